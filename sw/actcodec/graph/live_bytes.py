"""The most bytes of tensors that live during a step, above those before it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from actcodec.saved.allocations import allocations
from actcodec.saved.peak_memory import PeakMemory


def peak_of_step(step: Callable[[], object], device: torch.device) -> int:
    """Run a step and return its peak: by the statistics of torch's allocator on CUDA, by the allocator's events elsewhere."""
    if device.type != "cuda":
        return allocations(step).peak
    memory = PeakMemory(device)
    step()
    assert memory.bytes is not None, "CUDA's allocator counts"
    return memory.bytes
