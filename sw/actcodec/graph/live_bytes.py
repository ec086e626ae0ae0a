"""The most bytes of tensors that live during a step, above those before it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile


def peak_of_step(step: Callable[[], object], device: torch.device) -> int:
    """Run a step and return its peak: by the statistics of torch's allocator on CUDA, by the allocator's events elsewhere."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        step()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        step()
    events = found.profiler.kineto_results.events()
    live = peak = 0
    for _, nbytes in sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"):
        live += nbytes
        peak = max(peak, live)
    return peak
