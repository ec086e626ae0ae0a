"""Measure the peak of memory in use since some moment, as the operating system or the CUDA allocator counts it."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import torch

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
#: Makes Linux reset the highest resident size (proc(5)).
_FORGET_HIGHEST = "5"


class PeakMemory:
    """Measure from the moment this object is made.

    Parameters
    ----------
    device
        On a CUDA device, bytes of its tensors are counted by torch's allocator, whose ``max_memory_allocated`` is reset. On any
        other device, resident bytes of the process are counted, on Linux only, including memory that an allocator holds in
        reserve.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        else:
            _forget_highest()
        self._before = self._now()

    @property
    def bytes(self) -> int | None:
        """Largest increase over the initial memory in use so far; None if it cannot be measured."""
        if self._before is None:
            return None
        highest = torch.cuda.max_memory_allocated(self._device) if self._device.type == "cuda" else _resident("VmHWM")
        return None if highest is None else max(highest - self._before, 0)

    def _now(self) -> int | None:
        return torch.cuda.memory_allocated(self._device) if self._device.type == "cuda" else _resident("VmRSS")


def _forget_highest() -> None:
    # Without permission the peak may be an earlier one.
    with contextlib.suppress(OSError):
        _RESET.write_text(_FORGET_HIGHEST, encoding="ascii")


def _resident(what: str) -> int | None:
    try:
        found = re.search(rf"^{what}:\s+(\d+) kB$", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1]) << 10
