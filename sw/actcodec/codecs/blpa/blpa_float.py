"""BLPA's fixed-point copies as published: floating-point steps, signs kept without exception (section 3.2).

The integer codec ``blpa`` cannot serve here. It starts from SFPR's 16-bit integers, in which small negative values are zero, it
takes zero for positive, and where zero lies beyond ``beta +- 3 gamma`` signs are lost: ReLU's gradient would not be exact.
Here three things differ from the formula of the paper, where it would break the promise that the sign of a value is kept:

- a value on the border of two steps belongs to the lower one, so that zero is not positive, as ReLU has it;
- where ``beta +- 3 gamma`` does not reach one step across zero, the range is extended until it does, so that steps are wider;
- gamma may be negative or zero: its magnitude counts.

Codes are limited at both ends, unlike in the published code.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from cdu_spec.affine import CODE_BITS
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.actnn.float_forms import as_dtype, no_bitstream
from actcodec.codecs.affine.affine_scales import BLPA_REACH
from actcodec.codecs.copies import Change, SteppedCopyCodec, unchanged
from actcodec.codecs.shapes import Box, boxes, channel_view, channels_shape
from actcodec.golden.codes import pack_tight, unpack_tight


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """Steps of channels. Code c stands for the values above ``first + c`` steps up to ``first + c + 1``, by their middle."""

    bits: int
    step: Tensor  #: float32 (channels,), positive
    first: Tensor  #: int16 (channels,), ``1 - 2**bits`` to -1: steps below and above zero are always among the codes

    @classmethod
    def around(cls, beta: Tensor, gamma: Tensor, bits: int, dtype: torch.dtype) -> FixedPoint:
        """The range ``beta - 3 |gamma|`` to ``beta + 3 |gamma|``, extended across zero where need be.

        Parameters
        ----------
        beta, gamma
            Finite floats (channels,).
        bits
            Per value: 1, 2, 4 or 8 (paper: K).
        dtype
            Of the decoded values: a step must not vanish in it.
        """
        levels, half = 1 << bits, 1 << (bits - 1)
        beta, gamma = beta.to(torch.float64), gamma.to(torch.float64).abs()
        gamma = gamma.clamp_min(least_step(dtype) * levels / (2 * BLPA_REACH))
        published = 2 * BLPA_REACH * gamma / levels
        offset = (beta / published).floor()
        extended = (beta.abs() + BLPA_REACH * gamma) / (levels - 1)
        reaches = (offset > -half) & (offset < half)
        step = torch.where(reaches, published, extended).clamp_max(torch.finfo(torch.float32).max)
        beyond = torch.where(beta > 0, -1.0, 1.0 - levels)
        return cls(bits, step.to(torch.float32), torch.where(reaches, offset - half, beyond).to(torch.int16))

    def codes(self, values: Tensor, box: Box) -> Tensor:
        """Those of a box of a tensor, float32 (n, channels, m), to uint8, limited to 0 .. 2**bits - 1."""
        step, first = (part[box[1], None] for part in (self.step, self.first))
        steps = (values / step).ceil_().sub_(1)
        # Where the quotient is too small for a float, the sign still counts.
        steps = torch.where(values > 0, steps.clamp_min(0), steps.clamp_max(-1))
        return steps.sub_(first).clamp_(0, (1 << self.bits) - 1).to(torch.uint8)

    def values(self, codes: Tensor, box: Box) -> Tensor:
        """Those of a box, uint8 (n, channels, m), to float32, the middles of the steps."""
        return (codes.to(torch.float32) + 0.5).add_(self.first[box[1], None]).mul_(self.step[box[1], None])

    @property
    def nbytes(self) -> int:
        """Bytes of both parameters."""
        return sum(part.numel() * part.element_size() for part in (self.step, self.first))


@dataclass(frozen=True, eq=False)
class BlpaForm:
    """A K-bit copy of a tensor whose channels are counted by the second axis (a tensor of rank 1 is one channel)."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    grid: FixedPoint
    rectified: bool  #: no value was negative: what is decoded as negative becomes zero
    packed: Tensor  #: uint8 (ceil(values * bits / 8),)

    @classmethod
    def of(cls, x: Tensor, grid: FixedPoint, *, rectified: bool = False) -> BlpaForm:
        """The copy of a float tensor."""
        codes = torch.empty(channels_shape(tuple(x.shape)), dtype=torch.uint8, device=x.device)
        for box in boxes(tuple(x.shape), x.device):
            codes[box] = grid.codes(channel_view(x.detach(), box).to(torch.float32), box)
        return cls(tuple(x.shape), x.dtype, grid, rectified, pack_tight(codes.flatten(), grid.bits))

    @property
    def step(self) -> Tensor:
        """float32 (channels,), positive."""
        return self.grid.step

    @property
    def nbytes(self) -> int:
        """Bytes of codes, steps and first codes (shape, format and the flag are not counted)."""
        return self.packed.numel() + self.grid.nbytes

    def to_bytes(self) -> bytes:
        """Raises UserError: a floating-point form is not a stream."""
        raise no_bitstream()

    def keep_signs(self, x: Tensor) -> None:
        """Nothing: no step goes across zero."""

    def rebuilt(self, change: Change) -> Tensor:
        """See :class:`~actcodec.codecs.copies.Copy`."""
        codes = unpack_tight(self.packed, self.grid.bits, prod(self.shape)).view(channels_shape(self.shape))
        rebuilt = torch.empty(codes.shape, dtype=self.dtype, device=codes.device)
        for box in boxes(self.shape, codes.device):
            values = self.grid.values(codes[box], box)
            rebuilt[box] = as_dtype(change(values.clamp_min_(0) if self.rectified else values, box), self.dtype)
        return rebuilt.view(self.shape)

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The values a' in shape and dtype of the original; what lies beyond the dtype becomes its extremes."""
        return self.rebuilt(unchanged)


@dataclass
class BlpaFloatCodec(SteppedCopyCodec):
    """``blpa-float``: BLPA's copy of any tensor, three standard deviations around the mean of each channel. Signs are kept.

    Zero has no code of its own: it is decoded as half a step below, or as zero in tensors without negative values.

    Policy ``blpa`` (:mod:`actcodec.policies.norm_groups`) takes the range from batch normalisation where there is one.

    Parameters
    ----------
    bits
        Per value: 1, 2, 4 or 8 (paper: K).
    """

    bits: int = 4

    name = "blpa-float"

    def __post_init__(self) -> None:
        if isinstance(self.bits, bool) or self.bits not in CODE_BITS:
            raise UserError(f"bits = {self.bits!r} is not allowed: use {', '.join(map(str, CODE_BITS))}")

    def steps(self, beta: Tensor, gamma: Tensor, dtype: torch.dtype) -> Tensor:
        """See :class:`SteppedCopyCodec`."""
        return FixedPoint.around(beta, gamma, self.bits, dtype).step

    def copy(self, x: Tensor, middle: Tensor, deviation: Tensor, *, rectified: bool = False) -> BlpaForm:
        """See :class:`SteppedCopyCodec`."""
        return BlpaForm.of(x, FixedPoint.around(middle, deviation, self.bits, x.dtype), rectified=rectified)


def least_step(dtype: torch.dtype) -> float:
    """The least step of copies.

    Twice one whose half is a normal number in float32 and not zero in ``dtype``: extended steps can be half as wide.
    """
    details = torch.finfo(dtype)
    return 4 * max(torch.finfo(torch.float32).smallest_normal, details.smallest_normal * details.eps)
