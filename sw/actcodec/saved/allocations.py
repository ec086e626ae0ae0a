"""Record the events of torch's CPU allocator while a function runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from torch._C._autograd import DeviceType
from torch.autograd.profiler import profile

Result = TypeVar("Result")
_MEMORY_EVENT = "[memory]"


@dataclass(frozen=True)
class Allocations(Generic[Result]):
    """Bytes of tensors on the CPU, relative to the bytes in use before."""

    result: Result
    peak: int  #: most bytes at any time
    kept: int  #: bytes at the end, result included

    @property
    def temporary(self) -> int:
        """Bytes at the peak beyond those kept."""
        return self.peak - self.kept


def allocations(run: Callable[[], Result]) -> Allocations[Result]:
    """Call ``run`` under torch's profiler. Memory that does not come from torch's allocator (numpy, Python) is not seen."""
    # torch.profiler wraps this class and imports the compiler, which takes seconds.
    with profile(use_kineto=True, profile_memory=True) as profiler:
        result = run()
    assert profiler.kineto_results is not None, "it has run"
    events = [event for event in profiler.kineto_results.events() if event.name() == _MEMORY_EVENT]
    now = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        if event.device_type() == DeviceType.CPU:
            now += event.nbytes()
            peak = max(peak, now)
    return Allocations(result, peak, now)
