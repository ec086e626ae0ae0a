"""The arithmetic of ``blpa-float`` on all values of a tensor, by torch: codes of the steps of a channel.

This is the specification of every other way to compute it: float32 operations one by one, in the order in which they stand
here.
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
    """``slope * a + shift`` of the values a of each channel; float32 (channels,)."""

    slope: Tensor
    shift: Tensor

    def __call__(self, values: Tensor, box: Box) -> Tensor:
        """Of the values of a box of a tensor, float32 (n, channels, m), which are overwritten."""
        return values.mul_(self.slope[box[1], None]).add_(self.shift[box[1], None])


class StepQuantizer:
    """Codes of steps, packed, and the middles of these steps.

    Channels are counted by the second axis (a tensor of rank 1 is one). Code c of ``bits`` bits stands for the values above
    ``first + c`` steps up to ``first + c + 1``, none of which goes across zero; ``step`` is float32 (channels,), positive,
    ``first`` int16 (channels,).
    """

    def pack(self, x: Tensor, step: Tensor, first: Tensor, bits: int) -> Tensor:
        """Of finite x with any strides, uint8 (ceil(values * bits / 8),)."""
        codes = torch.empty(channels_shape(tuple(x.shape)), dtype=torch.uint8, device=x.device)
        for box in boxes(tuple(x.shape), x.device):
            steps = cells(channel_view(x, box).to(torch.float32), step[box[1], None])
            codes[box] = steps.sub_(first[box[1], None]).clamp_(0, (1 << bits) - 1)
        return pack_tight(codes.flatten(), bits)

    def values(
        self,
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
        """The middles of steps in ``shape`` and ``dtype``; beyond the dtype: its extremes.

        Parameters
        ----------
        packed, step, first, bits
            See :meth:`pack`.
        shape, dtype
            Of the original.
        rectified
            Negative middles become zero.
        line
            What becomes of them then, before they are brought to the dtype.
        """
        whole = tuple(shape)
        codes = unpack_tight(packed, bits, prod(whole)).view(channels_shape(whole))
        rebuilt = torch.empty(codes.shape, dtype=dtype, device=codes.device)
        for box in boxes(whole, codes.device):
            values = (codes[box].to(torch.float32) + 0.5).add_(first[box[1], None]).mul_(step[box[1], None])
            rebuilt[box] = finished(values, box, dtype, rectified=rectified, line=line)
        return rebuilt.view(whole)


def cells(values: Tensor, step: Tensor) -> Tensor:
    """The number of the step in which each value lies, float32; its end belongs to the step below, as does zero."""
    numbers = (values / step).ceil_().sub_(1)
    # Where the quotient is too small for a float, the sign still counts.
    return torch.where(values > 0, numbers.clamp_min(0), numbers.clamp_max(-1))


def finished(values: Tensor, box: Box, dtype: torch.dtype, *, rectified: bool, line: Line | None) -> Tensor:
    """Middles of steps, float32, as they are wanted: see :meth:`StepQuantizer.values`."""
    if rectified:
        values.clamp_min_(0)
    return as_dtype(values if line is None else line(values, box), dtype)
