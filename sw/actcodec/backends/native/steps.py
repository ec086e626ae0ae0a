"""Arithmetic of ``blpa-float`` by compiled kernels, bit for bit equal to the golden model."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from actcodec.backends.job import FORMATS
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import NOTHING, kernels
from actcodec.golden.floating.steps import Line
from actcodec.golden.shapes import channels_shape


def pack(x: Tensor, step: Tensor, first: Tensor, bits: int) -> Tensor:
    """Compute :func:`actcodec.golden.floating.steps.pack`."""
    x = host(x)
    packed = torch.empty(-(-x.numel() * bits // 8), dtype=torch.uint8)
    layout = (x.numel(), *channels_shape(tuple(x.shape))[1:])
    kernels()("step_codes", x, FORMATS[x.dtype], *layout, step, first, bits, packed)
    return packed


def values(
    packed: Tensor,
    step: Tensor,
    first: Tensor,
    bits: int,
    shape: Sequence[int],
    dtype: torch.dtype,
    *,
    rectified: bool = False,
    line: Line | None = None,
) -> Tensor:
    """Compute :func:`actcodec.golden.floating.steps.values`."""
    y = torch.empty(tuple(shape), dtype=dtype)
    layout = (prod(y.shape), *channels_shape(tuple(y.shape))[1:])
    grid = (step, first, bits, rectified, *ends_of(line), torch.finfo(dtype).max)
    kernels()("step_values", host(packed), FORMATS[dtype], *layout, *grid, y)
    return y


def ends_of(line: Line | None) -> tuple[Tensor | int, Tensor | int]:
    """Return slope and shift as arguments of kernels."""
    return (NOTHING, NOTHING) if line is None else (line.slope.contiguous(), line.shift.contiguous())
