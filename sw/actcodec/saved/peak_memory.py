"""The most memory that was in use since some moment, as the operating system or the CUDA allocator count it."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import torch

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
#: What makes Linux forget the highest resident size so far (proc(5)).
_FORGET_HIGHEST = "5"


class PeakMemory:
    """Begins to measure when it is made.

    Parameters
    ----------
    device
        A CUDA device: bytes of its tensors, by torch's allocator, whose ``max_memory_allocated`` begins anew. Any other:
        resident bytes of the process, on Linux; what an allocator keeps for later counts as well.
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
        """How much more than at the beginning was in use at most up to now; None where nobody counts."""
        if self._before is None:
            return None
        highest = torch.cuda.max_memory_allocated(self._device) if self._device.type == "cuda" else _resident("VmHWM")
        return None if highest is None else max(highest - self._before, 0)

    def _now(self) -> int | None:
        return torch.cuda.memory_allocated(self._device) if self._device.type == "cuda" else _resident("VmRSS")


def _forget_highest() -> None:
    # Where that is not allowed, the peak may be one of before.
    with contextlib.suppress(OSError):
        _RESET.write_text(_FORGET_HIGHEST, encoding="ascii")


def _resident(what: str) -> int | None:
    try:
        found = re.search(rf"^{what}:\s+(\d+) kB$", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1]) << 10
