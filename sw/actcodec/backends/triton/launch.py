"""Launch of kernels: their devices, arguments, and numbers of programs."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
import triton
from cdu_tools.errors import UserError
from torch import Tensor
from triton.runtime.interpreter import InterpretedFunction

#: Number of values per program, and of blocks of 64 of them.
PROGRAM_VALUES = 1024
PROGRAM_BLOCKS = 16
#: Compiler options: products and sums are never fused, as they are two operations in torch.
OPTIONS = {"enable_fp_fusion": False}


def launch(kernel: Any, programs: int, *arguments: Tensor | int, **constants: Any) -> None:
    """Run a kernel over a grid of one axis on the device of its tensors, which come through :func:`bits_of`.

    Raises UserError for tensors that the kernel cannot reach.
    """
    device = next(part.device for part in arguments if isinstance(part, Tensor))
    if device.type != "cuda" and not isinstance(kernel, InterpretedFunction):
        raise UserError(
            f"backend 'triton' computes on GPUs, and a tensor is on {device}: use backend 'torch', or set TRITON_INTERPRET=1 "
            "before Python starts, and its interpreter computes on the CPU"
        )
    if programs:
        with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
            resolved = (part.resolve_neg() if isinstance(part, Tensor) else part for part in arguments)
            kernel[(programs,)](*resolved, **constants, **OPTIONS)


def bits_of(x: Tensor) -> Tensor:
    """Return a tensor as an argument of kernels: bfloat16 as int16, because Triton's interpreter rounds it otherwise."""
    return x.resolve_neg().view(torch.int16) if x.dtype == torch.bfloat16 else x


def programs_for(count: int, each: int) -> int:
    """Return the number of programs for ``count`` items, ``each`` of them in a program."""
    return -(-count // each)


def tile_of(columns: int) -> dict[str, int]:
    """Return the size of the tiles, powers of two, that cover a matrix with this number of columns."""
    width = min(triton.next_power_of_2(columns), PROGRAM_VALUES)
    return {"tile_rows": PROGRAM_VALUES // width, "tile_columns": width}
