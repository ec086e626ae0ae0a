"""The affine quantiser: 1, 2, 4 or 8 bits per value, for the modes of DIVISION, ActNN, BLPA and AC-GC.

All of them work on the 16-bit integer that SFPR delivers, so that every result is exact ("Affine modes" of
docs/reference/bitstream.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cdu_tools.errors import UserError
from cdu_tools.numbers import is_whole

from cdu_spec.sfpr import SCALE_EXPONENT_LIMIT

#: Bits of the integers that are quantised (SFPR's result in these modes).
BASE_BITS = 16
#: Bits per code.
CODE_BITS = (1, 2, 4, 8)
#: Values that share a range in mode actnn: the capacity of the alignment buffer (ActNN's group size).
GROUP_VALUES = 256
#: Bits of a seed, and the greatest one.
SEED_BITS = 32
MAX_SEED = (1 << SEED_BITS) - 1
#: Significant bits of a step that is computed per block: the mantissa m of D = m * 2**e.
MANTISSA_BITS = 8
#: Greatest exponent e of such a step.
MAX_EXPONENT = 9
#: Fraction bits of a quotient, and bits of the random number that is added to it.
FRACTION_BITS = 16
#: The reciprocal of a normalised mantissa m (128..255) is ``round(2**RECIPROCAL_SHIFT / m)``.
RECIPROCAL_SHIFT = 23
#: Bits of a decoded integer, sign and offset included.
DECODED_BITS = 17
#: The reciprocals of the affine modes' scales lie in [2**-120, 2**111], so that every product with a decoded integer is a
#: finite float32 number.
RECIPROCAL_EXPONENT_LIMIT = 111


def scale_exponents(*, multiplier: bool, affine: bool) -> tuple[int, int]:
    """Return the binary logarithms of the least and greatest scale of a job: a multiplier k, or a reciprocal r."""
    inner = RECIPROCAL_EXPONENT_LIMIT if affine else SCALE_EXPONENT_LIMIT
    return (-inner, SCALE_EXPONENT_LIMIT) if multiplier else (-SCALE_EXPONENT_LIMIT, inner)


def check_code_bits(bits: object) -> None:
    """Raise UserError for anything but a number of :data:`CODE_BITS`."""
    if not is_whole(bits) or bits not in CODE_BITS:
        raise UserError(f"bits = {bits!r} is not allowed: use {', '.join(map(str, CODE_BITS))}")


class RangeKind(Enum):
    """The range that a step of mode division covers: the channel's, given by its scale, or the block's, given by its header."""

    CHANNEL = "channel"
    BLOCK = "block"


@dataclass(frozen=True)
class AffineSettings:
    """Settings of the affine quantiser for one job. Every instance is valid: UserError otherwise.

    Parameters
    ----------
    bits
        Bits per code: 1, 2, 4 or 8.
    step_log2
        Binary logarithm of a step that is the same for all blocks (division with the channel's range, blpa, autoquant),
        0 to ``16 - bits``, in units of SFPR's result; at least 1 in division with the channel's range.
    stochastic
        True for stochastic rounding, False for rounding to nearest. blpa always rounds down.
    block_range
        Mode division: True for the block's range.
    seed
        Seed of the random numbers, 0 to 2**32 - 1. A decoder does not need it.
    statistics
        Mode division, compression only: True for a first pass that delivers mean, least and greatest integer of every block,
        and no codes.
    """

    bits: int = 2
    step_log2: int = 0
    stochastic: bool = True
    block_range: bool = False
    seed: int = 0
    statistics: bool = False

    def __post_init__(self) -> None:
        check_code_bits(self.bits)
        if not is_whole(self.step_log2, 0, BASE_BITS - self.bits):
            raise UserError(
                f"step_log2 = {self.step_log2!r} is not allowed with {self.bits} bits: use 0 to {BASE_BITS - self.bits}"
            )
        if not is_whole(self.seed, 0, MAX_SEED):
            raise UserError(f"seed = {self.seed!r} is not allowed: use 0 to {MAX_SEED}")

    @property
    def levels(self) -> int:
        """The greatest code, B = 2**bits - 1 (ActNN)."""
        return (1 << self.bits) - 1

    @property
    def fixed_low(self) -> int:
        """Z of blpa and autoquant, the integer of code 0."""
        return -(1 << (self.bits - 1 + self.step_log2))


def reciprocal(mantissa: int) -> int:
    """Return the 17-bit reciprocal of a normalised mantissa (128..255)."""
    return ((1 << RECIPROCAL_SHIFT) + mantissa // 2) // mantissa
