"""Selection of backend ``triton``, where Triton is installed."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

from cdu_tools.distribution import missing
from cdu_tools.errors import MissingToolError

from actcodec.backends.backend import Backend

#: The oldest Triton whose compiled kernels round as IEEE 754 says; 3.5 divides otherwise.
LEAST_TRITON = (3, 6)
#: Environment variable with which Triton's interpreter computes, on the CPU too.
_INTERPRET = "TRITON_INTERPRET"


@cache
def computes_on(device: str) -> bool:
    """Return whether Triton is installed and computes on a type of device."""
    return (device == "cuda" or os.environ.get(_INTERPRET) == "1") and _is_new(_version())


def _version() -> str:
    """Return the version of Triton; empty if it is not installed."""
    if find_spec("triton") is None:
        return ""
    import triton

    return str(triton.__version__)


def _is_new(version: str) -> bool:
    return bool(version) and tuple(map(int, version.split(".")[:2])) >= LEAST_TRITON


def triton_backend() -> Backend:
    """Return the backend of kernels for GPUs; raise MissingToolError if Triton is not installed or too old."""
    version = _version()
    if not version:
        raise missing("the package triton of backend 'triton'", "gpu")
    if not _is_new(version):
        least = ".".join(map(str, LEAST_TRITON))
        raise MissingToolError(
            f"backend 'triton' needs triton {least} or newer, and {version} is installed: use backend 'torch', or a newer torch"
        )
    from actcodec.backends.triton.backend import TritonBackend

    return TritonBackend()
