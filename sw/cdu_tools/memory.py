"""Determine the memory that a process may use, as far as the system tells."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
#: Divisor of the memory for a tensor: making a tensor takes up to three times its size, and its stream exists too.
_TENSOR_PARTS = 4


def tensor_bytes() -> int:
    """Return the default limit in bytes of a tensor that is made or read: a quarter of :func:`usable_bytes`."""
    return usable_bytes() // _TENSOR_PARTS


def usable_bytes() -> int:
    """Return the machine's memory in bytes, or less by the limit of a control group or by RLIMIT_AS."""
    page = os.sysconf("SC_PAGE_SIZE")
    limits = [os.sysconf("SC_PHYS_PAGES") * page, *_group_limits()]
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space != resource.RLIM_INFINITY:
        limits.append(max(space - int(Path("/proc/self/statm").read_text().split()[0]) * page, 0))
    return min(limits)


def _group_limits() -> Iterator[int]:
    """Yield the limits of the control groups of the process, of either version."""
    lines: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _along(_GROUPS, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _along(_GROUPS / "memory", path, "memory.limit_in_bytes")


def _along(root: Path, path: str, file: str) -> Iterator[int]:
    """Yield the numbers in files of this name in a group and its parents."""
    group = Path(path.lstrip("/"))
    for folder in (group, *group.parents):
        with suppress(OSError, ValueError):  # the root has no such file, and a file may hold "max"
            yield int((root / folder / file).read_text())
