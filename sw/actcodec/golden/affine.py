"""Affine quantiser (:mod:`cdu_spec.affine`): steps, codes of 1, 2, 4 or 8 bits, and the integers that they stand for.

With the least value Z of a range and the step D = m * 2**e, a code is ``(x - Z) / D`` plus a random number below 1 or one
half, rounded down, in 0..B; it decodes to ``Z + code * D``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_spec.affine import (
    BASE_BITS,
    DECODED_BITS,
    FRACTION_BITS,
    MANTISSA_BITS,
    MAX_EXPONENT,
    RECIPROCAL_SHIFT,
    AffineSettings,
    reciprocal,
)
from cdu_spec.bitstream import BitstreamError
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.golden.checks import require
from actcodec.golden.pieces import CHUNK_VALUES
from actcodec.golden.random_bits import random_bits

#: Greatest ``x - Z``.
MAX_SPREAD = (1 << BASE_BITS) - 1
#: Fraction added to the quotient when rounding to nearest.
NEAREST = 1 << (FRACTION_BITS - 1)
_INTEGERS = (torch.int32, torch.int64)


@dataclass(frozen=True, eq=False)
class Ranges:
    """Ranges of codes: Z and D of blocks, groups or rows, int32 tensors of one shape or broadcastable to it."""

    low: Tensor  #: Z, -65536..32767
    mantissa: Tensor  #: m, 1..255
    exponent: Tensor  #: e, 0..15; 0..9 for steps from :func:`found_step`

    @classmethod
    def fixed(cls, low: Tensor, step_log2: int) -> Ranges:
        """Return ranges with the step ``2**step_log2``."""
        return cls(low, torch.ones_like(low), torch.full_like(low, step_log2))

    @classmethod
    def found(cls, least: Tensor, greatest: Tensor, bits: int) -> Ranges:
        """Return ranges from the least to at least the greatest value."""
        return cls(least, *found_step(greatest - least, bits))

    def per_row(self, rows: int) -> Ranges:
        """Repeat ranges (n,) of blocks for each of their ``rows`` rows: (n * rows, 1)."""
        return Ranges(*(part.repeat_interleave(rows)[:, None] for part in (self.low, self.mantissa, self.exponent)))

    def __getitem__(self, rows: slice) -> Ranges:
        """Return the ranges of some rows; a single range, common to all rows, is returned itself."""
        if len(self.low) == 1:
            return self
        return Ranges(self.low[rows], self.mantissa[rows], self.exponent[rows])

    def check(self, bits: int) -> None:
        """Raise BitstreamError for found steps that no encoder makes: none at all, or codes beyond 17 bits."""
        most = (1 << (DECODED_BITS - 1)) - 1
        highest = self.low + ((1 << bits) - 1) * (self.mantissa << self.exponent.clamp_max(MAX_EXPONENT))
        if not bool(((self.mantissa >= 1) & (self.exponent <= MAX_EXPONENT) & (highest <= most)).all()):
            raise BitstreamError("corrupted stream: the step of a block is out of range")


def found_step(spread: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Return mantissa and exponent of the least step ``m * 2**e >= spread / B`` with m of 8 bits, 1 * 2**0 at least.

    Parameters
    ----------
    spread
        Greatest minus least value, int32 or int64 in 0..65535, any shape.
    bits
        1, 2, 4 or 8.

    Returns
    -------
    m (1..255), e (0..9)
        int32, the shape of ``spread``.
    """
    require("spread", spread, _INTEGERS)
    levels = (1 << bits) - 1
    step = ((spread.to(torch.int32) + (levels - 1)) // levels).clamp_min_(1)
    length = torch.frexp(step.to(torch.float64))[1]
    exponent = (length - MANTISSA_BITS).clamp_min_(0).to(torch.int32)
    mantissa = (step + (1 << exponent) - 1) >> exponent
    carry = mantissa >> MANTISSA_BITS
    return mantissa >> carry, exponent + carry


def codes_of(x: Tensor, ranges: Ranges, bits: int, rho: Tensor | int) -> Tensor:
    """Return codes ``min(B, (v + rho) >> 16)`` with ``v = (t * inv) >> shift``, ``t = clamp(x - Z, 0, 65535)``.

    Parameters
    ----------
    x
        int16, any shape.
    ranges
        Broadcastable to ``x``.
    bits
        1, 2, 4 or 8.
    rho
        Fraction that is added before rounding down, 0..65535: a number, or integers broadcastable to ``x``.

    Returns
    -------
    uint8, the shape of ``x``.
    """
    require("x", x, (torch.int16,))
    # Exact in float64: t * inv has 33 bits at most, and the shift is a division by a power of two.
    factor = _inverse_steps(x.device)[ranges.mantissa.to(torch.int64)] * torch.exp2(-ranges.exponent.to(torch.float64))
    t = x.to(torch.float64).sub_(ranges.low).clamp_(0, MAX_SPREAD)
    v = t.mul_(factor).floor_().add_(rho)
    return v.mul_(2.0**-FRACTION_BITS).floor_().clamp_max_((1 << bits) - 1).to(torch.uint8)


def quantize(x: Tensor, ranges: Ranges, settings: AffineSettings, first: int = 0, *, down: bool = False) -> Tensor:
    """Return codes of consecutive rows of a job in the order of the payload.

    Parameters
    ----------
    x
        int16 (rows, 8); row i is beat ``first + i`` of the job.
    ranges
        (rows, 1) or (1, 1).
    settings
        Bits, rounding and seed.
    first
        Number of the first row's beat, to which its random numbers belong.
    down
        Always round down (BLPA).

    Returns
    -------
    uint8 (rows, 8).
    """
    codes = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
    step = CHUNK_VALUES // LANES
    for begin in range(0, len(x), step):
        rows = slice(begin, begin + step)
        piece = x[rows]
        rho: Tensor | int = 0 if down else NEAREST
        if settings.stochastic and not down:
            rho = random_bits(settings.seed, first + begin, len(piece), x.device)
        codes[rows] = codes_of(piece, ranges[rows], settings.bits, rho)
    return codes


def dequantize(codes: Tensor, ranges: Ranges) -> Tensor:
    """Return ``Z + code * D``, int32; uint8 ``codes`` of any shape that the ranges are broadcastable to."""
    require("codes", codes, (torch.uint8,))
    return codes.to(torch.int32).mul_(ranges.mantissa << ranges.exponent).add_(ranges.low)


def _inverse_steps(device: torch.device) -> Tensor:
    """Return ``inv * 2**-shift`` of each mantissa with exponent 0, float64 (256,); entry 0 is unused."""
    normalised = [m << (MANTISSA_BITS - m.bit_length()) for m in range(1, 1 << MANTISSA_BITS)]
    scaled = [reciprocal(n) * 2.0 ** (FRACTION_BITS - RECIPROCAL_SHIFT) * (n // m) for m, n in enumerate(normalised, 1)]
    return torch.tensor([0.0, *scaled], dtype=torch.float64, device=device)
