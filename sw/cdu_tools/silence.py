"""Silence for libraries whose C or C++ code writes to the standard output."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STANDARD_OUTPUT = 1


@contextmanager
def silent_libraries() -> Iterator[None]:
    """Drop what is written to the standard output while the context is open, by other threads and child processes too."""
    _flush()
    kept = os.dup(_STANDARD_OUTPUT)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), _STANDARD_OUTPUT)
    try:
        yield
    finally:
        _flush()
        os.dup2(kept, _STANDARD_OUTPUT)
        os.close(kept)


def _flush() -> None:
    """Write the buffers of Python and of C: what libraries print into a pipe waits there."""
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
