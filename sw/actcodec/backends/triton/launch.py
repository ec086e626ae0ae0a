"""Starting kernels: on which tensors, in how many programs."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
import triton
from cdu_tools.errors import UserError
from torch import Tensor
from triton.runtime.interpreter import InterpretedFunction

#: Values that a program handles, and blocks of 64 of them.
PROGRAM_VALUES = 1024
PROGRAM_BLOCKS = 16
#: Products and sums are never fused, as they are two operations in torch.
OPTIONS = {"enable_fp_fusion": False}


def launch(kernel: Any, programs: int, *arguments: Tensor | int, **constants: Any) -> None:
    """Run a kernel over a grid of one axis on the device of its tensors, of which bfloat16 ones come as :func:`bits_of` them.

    UserError for tensors that the kernel cannot reach.
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
    """A tensor as kernels take it: bfloat16 as int16, for the interpreter does not round as the format says."""
    return x.resolve_neg().view(torch.int16) if x.dtype == torch.bfloat16 else x


def programs_for(count: int, each: int) -> int:
    """Programs for so many things, ``each`` of them in a program."""
    return -(-count // each)


def tile_of(columns: int) -> dict[str, int]:
    """Size of the tiles that a matrix with so many columns is cut into, powers of two."""
    width = min(triton.next_power_of_2(columns), PROGRAM_VALUES)
    return {"tile_rows": PROGRAM_VALUES // width, "tile_columns": width}
