"""Values in a few bits, with a least value and a step in 16-bit floating point for each range: as the papers have it.

Base of DIVISION (:mod:`actcodec.codecs.division.division_float`) and of ActNN with groups in the order of the hardware, for
comparison with the integer forms. No hardware does this.

What the published code does wrong is not repeated: values are quantised with the rounded parameters that decoding uses, codes
are limited at both ends, and no padding enters a range.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from cdu_spec.affine import CODE_BITS, GROUP_VALUES
from cdu_spec.bitstream import Mode
from cdu_spec.geometry import LANES
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.affine.affine_codecs import NEAREST, STOCHASTIC
from actcodec.codecs.codec import check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.codecs.random_codec import RandomCodec
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.codes import pack_tight, unpack_tight
from actcodec.golden.random_bits import random_bits
from actcodec.golden.sfpr import UnfitValuesError

#: 16-bit formats of what is kept per cell, map or group.
HALF_FORMATS = {"bf16": torch.bfloat16, "fp16": torch.float16}
#: Keeps the random numbers apart from those of the integer forms.
_SALT = len(Mode) + 1


@dataclass(frozen=True, eq=False)
class FloatForm:
    """A tensor in floating-point form: 16-bit parameters and packed codes."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    bits: int
    range_values: int  #: consecutive values that share ``low`` and ``step``; the last range may have fewer
    low: Tensor  #: 16-bit floats (ranges,): no more than the least value of each range
    step: Tensor  #: 16-bit floats (ranges,)
    codes: Tensor  #: uint8 (ceil(values * bits / 8),)

    @property
    def nbytes(self) -> int:
        """Bytes of parameters and codes (the paper's account: shape and format are not counted)."""
        return sum(part.numel() * part.element_size() for part in (self.low, self.step, self.codes))

    def to_bytes(self) -> bytes:
        """Raises UserError: a floating-point form is not a stream."""
        raise no_bitstream()

    def values(self) -> Tensor:
        """``low + step * code``, float32 (values,)."""
        codes = unpack_tight(self.codes, self.bits, prod(self.shape)).to(torch.float32)
        return codes.mul_(self.per_value(self.step)).add_(self.per_value(self.low))

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor, float32 arithmetic."""
        return as_dtype(self.values(), self.dtype).view(self.shape)

    def per_value(self, per_range: Tensor) -> Tensor:
        """The parameter of each value, float32 (values,)."""
        return _spread(per_range, self.range_values, prod(self.shape))


class FloatCodec(RandomCodec):
    """What the codecs of floating-point forms have in common; each is a dataclass with these options and its own."""

    bits: int
    half: str
    rounding: str
    seed: int
    centred = True

    def __post_init__(self) -> None:
        if isinstance(self.bits, bool) or self.bits not in CODE_BITS:
            raise UserError(f"bits = {self.bits!r} is not allowed: use {', '.join(map(str, CODE_BITS))}")
        if self.half not in list(HALF_FORMATS):
            raise UserError(f"half = {self.half!r} is not allowed: use {' or '.join(HALF_FORMATS)}")
        if self.rounding not in (STOCHASTIC, NEAREST):
            raise UserError(f"rounding = {self.rounding!r} is not allowed: use {STOCHASTIC} or {NEAREST}")
        self._seeds = TensorSeeds(self.seed, _SALT)

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`Codec`."""
        return compressed.decompress()

    def _checked(self, x: Tensor) -> Tensor:
        """The values of a tensor that the codec takes, float32 (values,); UserError for any other."""
        check_input(x)
        if not self.takes(x.shape):
            raise UserError(f"{self.name} does not take a tensor of shape {tuple(x.shape)}: use actnn-float")
        check_finite(x)
        return x.detach().to(torch.float32).flatten()

    def _quantised(self, values: Tensor, x: Tensor, range_values: int) -> FloatForm:
        """The form of ``values``, float32 (values,), in place of those of ``x``. Every call draws other random numbers."""
        half = HALF_FORMATS[self.half]
        least, greatest = _least_and_greatest(values, range_values)
        low = rounded_to_half(least, half, up=False)
        # With the rounded least value, so that the codes reach the greatest one.
        step = rounded_to_half((greatest - low.to(torch.float32)) / ((1 << self.bits) - 1), half, up=True)
        step = step.clamp_min(torch.finfo(half).smallest_normal)
        self._check_range(x, low, step)
        floor, width = (_spread(part, range_values, values.numel()) for part in (low, step))
        added: Tensor | float = 0.5
        if self.rounding == STOCHASTIC:
            drawn = random_bits(self._seeds.next(), 0, -(-values.numel() // LANES), x.device)
            added = drawn.flatten()[: values.numel()] * 2.0**-16
        codes = ((values - floor) / width + added).floor_().clamp_(0, (1 << self.bits) - 1).to(torch.uint8)
        return FloatForm(tuple(x.shape), x.dtype, self.bits, range_values, low, step, pack_tight(codes, self.bits))

    def _check_range(self, x: Tensor, *parameters: Tensor) -> None:
        """UnfitValuesError where a parameter of ``x`` went beyond the 16-bit format."""
        if not all(bool(parameter.isfinite().all()) for parameter in parameters):
            other = "half=bf16" if self.half == "fp16" else f"codec {self.name.removesuffix('-float')}"
            raise UnfitValuesError(f"values up to {float(x.detach().abs().max()):g} do not fit {self.half}: use {other}")


@dataclass
class ActnnFloatCodec(FloatCodec):
    """``actnn-float``: codec ``actnn`` in floating point. Range of every 256 consecutive values, whichever sample they are of.

    Any shape. :class:`~actcodec.codecs.actnn.sample_groups.ActnnSampleCodec` has groups within samples, as published.

    Parameters as for :class:`~actcodec.codecs.division.division_float.DivisionFloatCodec`.
    """

    bits: int = 2
    half: str = "bf16"
    rounding: str = STOCHASTIC
    seed: int = 0

    name = "actnn-float"

    def compress(self, x: Tensor) -> FloatForm:
        """See :class:`Codec`. Every call draws other random numbers."""
        return self._quantised(self._checked(x), x, GROUP_VALUES)


def no_bitstream() -> UserError:
    """The error of asking a floating-point form for its stream."""
    return UserError("a floating-point form has no bitstream: use division or actnn")


def as_dtype(values: Tensor, dtype: torch.dtype) -> Tensor:
    """float32 values, which are overwritten, in a format; those that rounding put beyond its range become its extremes."""
    return values.clamp_(torch.finfo(dtype).min, torch.finfo(dtype).max).to(dtype)


def rounded_to_half(values: Tensor, half: torch.dtype, *, up: bool) -> Tensor:
    """float32 to a 16-bit format, rounded up or down."""
    near = values.to(half)
    back = near.to(torch.float32)
    wrong = back < values if up else back > values
    distance = values.abs() * torch.finfo(half).eps + torch.finfo(half).smallest_normal * torch.finfo(half).eps
    return torch.where(wrong, (values + distance if up else values - distance).to(half), near)


def _least_and_greatest(values: Tensor, range_values: int) -> tuple[Tensor, Tensor]:
    """Of each range, float32 (ranges,)."""
    full = values
    if values.numel() % range_values:
        full = values[-1:].expand(-(-values.numel() // range_values) * range_values).clone()
        full[: values.numel()] = values
    least, greatest = full.view(-1, range_values).aminmax(dim=1)
    return least, greatest


def _spread(per_range: Tensor, range_values: int, count: int) -> Tensor:
    """float32 (count,) from 16-bit floats (ranges,)."""
    return per_range.to(torch.float32).repeat_interleave(range_values)[:count]
