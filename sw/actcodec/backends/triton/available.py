"""Selection of backend ``triton``, where Triton is installed."""

from __future__ import annotations

from importlib.util import find_spec

from cdu_tools.distribution import missing
from cdu_tools.errors import MissingToolError

from actcodec.backends.backend import Backend

#: The oldest Triton whose compiled kernels round as IEEE 754 says; 3.5 divides otherwise.
LEAST_TRITON = (3, 6)


def triton_backend() -> Backend:
    """Return the backend of kernels for GPUs; raise MissingToolError if Triton is not installed or too old."""
    if find_spec("triton") is None:
        raise missing("the package triton of backend 'triton'", "gpu")
    import triton

    if tuple(map(int, triton.__version__.split(".")[:2])) < LEAST_TRITON:
        least = ".".join(map(str, LEAST_TRITON))
        raise MissingToolError(
            f"backend 'triton' needs triton {least} or newer, and {triton.__version__} is installed: use backend 'torch', "
            "or a newer torch"
        )
    from actcodec.backends.triton.backend import TritonBackend

    return TritonBackend()
