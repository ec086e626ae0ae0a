"""Detection of a device for Triton's kernels: a CUDA device, the CPU by Triton's interpreter, or none."""

import os
from importlib.util import find_spec

import pytest
import torch

#: Environment variable that makes Triton interpret kernels in the whole process, if set before Triton is imported.
INTERPRET = "TRITON_INTERPRET"


def _device():
    if find_spec("triton") is None:
        return None
    if os.environ.get(INTERPRET) == "1":
        return "cpu"
    return "cuda" if torch.cuda.is_available() else None


DEVICE = _device()
#: Factor on the examples of a property: kernels on a device take less time than an interpreter.
MORE = 10 if DEVICE == "cuda" else 1
needs_kernels = pytest.mark.skipif(DEVICE is None, reason="needs a CUDA device; test_triton_interpreted.py runs it without one")
