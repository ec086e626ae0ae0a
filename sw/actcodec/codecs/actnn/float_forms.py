"""Values in a few bits, with a least value and a step in 16-bit floating point per range, as in the papers.

Base of DIVISION (:mod:`actcodec.codecs.division.division_float`) and of ActNN with groups in the order of the hardware, for
comparison with the integer forms. No hardware computes these forms.

Errors of the published code are not repeated: values are quantised with the rounded parameters that decoding uses, codes are
limited at both ends, and no padding enters a range.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_spec.affine import GROUP_VALUES, check_code_bits
from cdu_spec.modes import Mode
from cdu_tools.errors import UserError
from cdu_tools.texts import extents
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.named import backend as backend_of
from actcodec.codecs.affine.affine_codecs import NEAREST, STOCHASTIC
from actcodec.codecs.codec import check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.codecs.random_codec import RandomCodec
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.floating import ranges
from actcodec.golden.formats import quotient, rounded_to_half
from actcodec.golden.pooling import Means
from actcodec.golden.sfpr import UnfitValuesError

#: 16-bit formats of the parameters per cell, map or group.
HALF_FORMATS = {"bf16": torch.bfloat16, "fp16": torch.float16}
#: Salt that separates the random numbers from those of the integer forms.
_SALT = len(Mode) + 1


@dataclass(frozen=True, eq=False)
class FloatForm:
    """Tensor in floating-point form: 16-bit parameters and packed codes."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    bits: int
    range_values: int  #: consecutive values that share ``low`` and ``step``; the last range may have fewer
    low: Tensor  #: 16-bit floats (ranges,): no more than the least value of each range
    step: Tensor  #: 16-bit floats (ranges,)
    codes: Tensor  #: uint8 (ceil(values * bits / 8),)

    @property
    def nbytes(self) -> int:
        """Return the bytes of parameters and codes (as in the paper, without shape and format)."""
        return sum(part.numel() * part.element_size() for part in (self.low, self.step, self.codes))

    def to_bytes(self) -> bytes:
        """Raise UserError: a floating-point form is not a stream."""
        raise no_bitstream()

    def rebuilt(self, backend: Backend, means: Means | None = None) -> Tensor:
        """Return ``low + step * code``, with the means of cells added if given."""
        grid = (self.range_values, self.low, self.step, self.bits)
        return backend.run(ranges.values, self.codes, *grid, self.shape, self.dtype, means)

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor, computed in float32."""
        return self.rebuilt(backend_of(backend))


class FloatCodec(RandomCodec):
    """Base class of the codecs of floating-point forms; each is a dataclass with these options and its own."""

    bits: int
    half: str
    rounding: str
    seed: int
    backend: str | Backend
    centred = True

    def __post_init__(self) -> None:
        check_code_bits(self.bits)
        if self.half not in list(HALF_FORMATS):
            raise UserError(f"half = {self.half!r} is not allowed: use {' or '.join(HALF_FORMATS)}")
        if self.rounding not in (STOCHASTIC, NEAREST):
            raise UserError(f"rounding = {self.rounding!r} is not allowed: use {STOCHASTIC} or {NEAREST}")
        self._seeds = TensorSeeds(self.seed, _SALT)
        self._backend = backend_of(self.backend)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self._backend)

    def _checked(self, x: Tensor) -> Tensor:
        """Return the values of a tensor that the codec takes, contiguous; raise UserError for any other."""
        check_input(x)
        if not self.takes(x.shape):
            raise UserError(f"{self.name} does not take a tensor of shape {extents(x.shape)}: use actnn-float")
        check_finite(x, self._backend)
        return x.detach().contiguous()

    def _quantised(self, x: Tensor, range_values: int, means: Means | None = None) -> FloatForm:
        """Return the form of ``x``, less means of cells if given. Every call draws new random numbers."""
        half = HALF_FORMATS[self.half]
        least, greatest = self._backend.run(ranges.edges, x, range_values, means)
        low = rounded_to_half(least, half, up=False)
        # The step follows from the rounded least value, so that the codes reach the greatest one.
        step = rounded_to_half(quotient(greatest - low.to(torch.float32), (1 << self.bits) - 1), half, up=True)
        step = step.clamp_min(torch.finfo(half).smallest_normal)
        self._check_range(x, low, step)
        seed = self._seeds.next() if self.rounding == STOCHASTIC else None
        codes = self._backend.run(ranges.codes, x, range_values, low, step, self.bits, seed, means)
        return FloatForm(tuple(x.shape), x.dtype, self.bits, range_values, low, step, codes)

    def _check_range(self, x: Tensor, *parameters: Tensor) -> None:
        """Raise UnfitValuesError if a parameter of ``x`` exceeds the 16-bit format."""
        if not all(bool(parameter.isfinite().all()) for parameter in parameters):
            other = "half=bf16" if self.half == "fp16" else f"codec {self.name.removesuffix('-float')}"
            most = float(x.detach().abs().max())
            raise UnfitValuesError(f"the range of values up to {most:g} does not fit {self.half}: use {other}")


@dataclass
class ActnnFloatCodec(FloatCodec):
    """Codec ``actnn-float``: codec ``actnn`` in floating point, a range for every 256 consecutive values across samples.

    Takes any shape. :class:`~actcodec.codecs.actnn.sample_groups.ActnnSampleCodec` has groups within samples, as published.

    Parameters as for :class:`~actcodec.codecs.division.division_float.DivisionFloatCodec`.
    """

    bits: int = 2
    half: str = "bf16"
    rounding: str = STOCHASTIC
    seed: int = 0
    backend: str | Backend = "torch"

    name = "actnn-float"

    def compress(self, x: Tensor) -> FloatForm:
        """Implement :class:`Codec`. Every call draws new random numbers."""
        return self._quantised(self._checked(x), GROUP_VALUES)


def no_bitstream() -> UserError:
    """Return the error for the missing stream of a floating-point form."""
    return UserError("a floating-point form has no bitstream: use division or actnn")
