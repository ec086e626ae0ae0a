"""Block-scaled formats: MX of the Open Compute Project (Microscaling Formats v1.0, 2023), and NVFP4 (NVIDIA, 2025).

A block is a number of consecutive values of a tensor that share a scale. In memory and in streams it is a byte with the scale,
then the codes, without gaps: 8 codes take as many bytes as one has bits, the first code in the lowest bits. Blocks follow
without gaps; the last one is padded with zeros. ``docs/reference/bitstream.md`` describes the format in prose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from cdu_tools.errors import UserError

#: Bias of a scale of MX, E8M0; the byte for NaN; the greatest byte of a number.
SCALE_BIAS, SCALE_NAN = 127, 255
SCALE_MOST = SCALE_NAN - 1
#: Values of a block of MX.
MX_VALUES = 32
#: Bytes of a scale in front of a block.
SCALE_BYTES = 1


class ScaleRule(Enum):
    """Rule for the scale X of a block from its greatest magnitude m."""

    FLOOR = "floor"  #: X = 2**(floor(log2 m) - emax), section 6.3 of the specification: codes saturate above greatest
    RCEIL = "rceil"  #: the least power of two for which m does not saturate (NVIDIA, cuBLAS: 1D block scaling)


@dataclass(frozen=True)
class BlockFormat:
    """The elements of a block. A code is, from the highest bit, sign, exponent and fraction; or a two's complement integer.

    Parameters
    ----------
    number
        Number in the field of a job that selects the format.
    exponent_bits, fraction_bits
        Bits of an element. Without exponent bits an element is an integer of steps of ``2**-fraction_bits``.
    greatest
        Code of the greatest number.
    emax
        Exponent of the greatest number.
    values
        Values of a block.
    """

    number: int
    exponent_bits: int
    fraction_bits: int
    greatest: int
    emax: int
    values: int = MX_VALUES

    @property
    def is_integer(self) -> bool:
        """Return whether elements are integers."""
        return self.exponent_bits == 0

    @property
    def bits(self) -> int:
        """Bits of a code: 4, 6 or 8."""
        return 1 + self.exponent_bits + self.fraction_bits + self.is_integer

    @property
    def block_bytes(self) -> int:
        """Bytes of a block, its scale included."""
        return SCALE_BYTES + self.values * self.bits // 8

    def row_bytes(self, rows: int) -> int:
        """Return the bytes of ``rows`` rows of 8 values with the scales of their blocks; the first row must begin a block."""
        return rows * self.bits + -(-8 * rows // self.values) * SCALE_BYTES

    @property
    def greatest_fraction(self) -> int:
        """Bits of the fraction of the greatest number, ``fraction_bits`` of them."""
        return self.greatest & ((1 << self.fraction_bits) - 1)

    @property
    def has_infinity(self) -> bool:
        """Return whether the code after the greatest number is infinity, as in IEEE 754."""
        return self.exponent_bits > 0 and self.greatest + 1 == ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal number; below it steps stay equal."""
        return 0 if self.is_integer else 2 - (1 << (self.exponent_bits - 1))


#: The formats of MX by the name of their codec. Codes beyond ``greatest`` are infinity and NaN: E5M2 has both, E4M3 NaN.
MX_FORMATS: Mapping[str, BlockFormat] = {
    "mxint8": BlockFormat(0, 0, 6, 0x7F, 0),
    "mxfp8-e4m3": BlockFormat(1, 4, 3, 0x7E, 8),
    "mxfp8-e5m2": BlockFormat(2, 5, 2, 0x7B, 15),
    "mxfp6-e2m3": BlockFormat(3, 2, 3, 0x1F, 2),
    "mxfp6-e3m2": BlockFormat(4, 3, 2, 0x1F, 4),
    "mxfp4": BlockFormat(5, 2, 1, 0x07, 2),
}


@dataclass(frozen=True)
class MxSettings:
    """Settings of mode mx: a format of :data:`MX_FORMATS`, and the rule of the scales, which decompression does not need."""

    format: str
    rule: ScaleRule = ScaleRule.FLOOR

    def __post_init__(self) -> None:
        if self.format not in MX_FORMATS:
            raise UserError(f"format = {self.format!r} is not allowed in mode mx: use {', '.join(MX_FORMATS)}")

    @property
    def kind(self) -> BlockFormat:
        """The elements of a block."""
        return MX_FORMATS[self.format]


#: The format whose scales are E4M3 numbers; the tensor has one more scale, a float32.
NVFP4 = "nvfp4"
NVFP4_FORMAT = BlockFormat(6, 2, 1, 0x07, 2, values=16)
NVFP4_SCALE = MX_FORMATS["mxfp8-e4m3"]
#: Bytes of the scale of a tensor in NVFP4.
TENSOR_SCALE_BYTES = 4
