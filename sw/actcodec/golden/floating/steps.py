"""Arithmetic of ``blpa-float``: packed codes of the steps of a channel, and the middles of these steps.

Axis 1 counts channels; a tensor of rank 1 is one channel. Code c of ``bits`` bits stands for values above ``first + c`` and up
to ``first + c + 1`` steps; no step contains values on both sides of zero. ``step`` is float32 (channels,), positive, ``first``
int16 (channels,).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from actcodec.golden.codes import pack_tight, unpack_tight
from actcodec.golden.formats import as_dtype
from actcodec.golden.shapes import Box, boxes, channel_view, channels_shape


@dataclass(frozen=True, eq=False)
class Line:
    """Function ``slope * a + shift`` of the values a of each channel; both float32 (channels,)."""

    slope: Tensor
    shift: Tensor

    def __call__(self, values: Tensor, box: Box) -> Tensor:
        """Apply the line to the values of a box of a tensor, float32 (n, channels, m), in place."""
        return values.mul_(self.slope[box[1], None]).add_(self.shift[box[1], None])


def pack(x: Tensor, step: Tensor, first: Tensor, bits: int) -> Tensor:
    """Return packed codes of finite x with any strides, uint8 (ceil(values * bits / 8),)."""
    codes = torch.empty(channels_shape(tuple(x.shape)), dtype=torch.uint8, device=x.device)
    for box in boxes(tuple(x.shape), x.device):
        steps = cells(channel_view(x, box).to(torch.float32), step[box[1], None])
        codes[box] = steps.sub_(first[box[1], None]).clamp_(0, (1 << bits) - 1)
    return pack_tight(codes.flatten(), bits)


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
    """Return the middles of steps in ``shape`` and ``dtype``, limited to the dtype's range.

    Parameters
    ----------
    packed, step, first, bits
        As for :func:`pack`, and its result.
    shape, dtype
        Shape and dtype of the original.
    rectified
        Turn negative middles into zero.
    line
        Function applied to the middles before conversion to the dtype.
    """
    whole = tuple(shape)
    codes = unpack_tight(packed, bits, prod(whole)).view(channels_shape(whole))
    rebuilt = torch.empty(codes.shape, dtype=dtype, device=codes.device)
    for box in boxes(whole, codes.device):
        values = (codes[box].to(torch.float32) + 0.5).add_(first[box[1], None]).mul_(step[box[1], None])
        rebuilt[box] = finished(values, box, dtype, rectified=rectified, line=line)
    return rebuilt.view(whole)


def cells(values: Tensor, step: Tensor) -> Tensor:
    """Return the number of each value's step, float32; a step includes its upper end, zero belongs to the step below."""
    numbers = (values / step).ceil_().sub_(1)
    # The sign still counts if the quotient is too small for a float.
    return torch.where(values > 0, numbers.clamp_min(0), numbers.clamp_max(-1))


def finished(values: Tensor, box: Box, dtype: torch.dtype, *, rectified: bool, line: Line | None) -> Tensor:
    """Return middles of steps, float32, rectified, transformed and converted as in :func:`values`."""
    if rectified:
        values.clamp_min_(0)
    return as_dtype(values if line is None else line(values, box), dtype)
