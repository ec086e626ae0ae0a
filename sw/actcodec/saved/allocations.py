"""Record the events of torch's CPU allocator while a function runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch._C._autograd import DeviceType
from torch.autograd.profiler import profile, record_function

Result = TypeVar("Result")
_MEMORY_EVENT = "[memory]"
_MARK = "[mark]"
# Kineto, which records for the profiler, prints a line when it begins and one when it ends, unless its level is above these.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")


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
    now = peak = 0
    for event in _events(profiler, DeviceType.CPU):
        if event.name() == _MEMORY_EVENT:
            now += event.nbytes()
            peak = max(peak, now)
    return Allocations(result, peak, now)


@dataclass(frozen=True)
class Mark:
    """A moment that :func:`mark` has noted: bytes relative to those in use before."""

    now: int
    peak: int  #: most bytes since the mark before it


def mark() -> None:
    """Note a moment of a function that :func:`bytes_at_marks` runs."""
    with record_function(_MARK):
        pass


def bytes_at_marks(run: Callable[[], object], device: torch.device) -> list[Mark]:
    """Call ``run`` and return its marks in order, and one for its end, of the memory of a device."""
    with profile(use_kineto=True, profile_memory=True) as profiler:
        run()
    found = []
    now = peak = 0
    for event in _events(profiler, DeviceType.CUDA if device.type == "cuda" else DeviceType.CPU):
        if event.name() == _MARK:
            found.append(Mark(now, peak))
            peak = now
        else:
            now += event.nbytes()
            peak = max(peak, now)
    return [*found, Mark(now, peak)]


def _events(profiler: profile, kind: DeviceType) -> list[Any]:
    """Return the events of memory of a kind of device, and marks, in order."""
    assert profiler.kineto_results is not None, "it has run"
    events = [
        event
        for event in profiler.kineto_results.events()
        if event.name() == _MARK or (event.name() == _MEMORY_EVENT and event.device_type() == kind)
    ]
    return sorted(events, key=lambda event: event.start_ns())
