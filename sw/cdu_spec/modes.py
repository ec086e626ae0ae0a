"""Modes of a unit, coders of their blocks, and number formats of values."""

from __future__ import annotations

from enum import IntEnum

from cdu_tools.near_names import unknown

from cdu_spec import gmc
from cdu_spec.affine import BASE_BITS
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES
from cdu_spec.mx import MX_FORMATS, MX_VALUES

#: Bytes of a ZVC mask.
MASK_BYTES = BLOCK_VALUES // 8
#: Bytes of a ZVC block without a zero, the longest block.
MAX_BLOCK_BYTES = MASK_BYTES + BLOCK_VALUES
#: Bytes of the least value or mean before a block (int16), and of its step (mantissa, exponent).
LOW_BYTES, STEP_BYTES = BASE_BITS // 8, 2
RANGE_BYTES = LOW_BYTES + STEP_BYTES
#: Bytes of the statistics of a block: mean, least and greatest value (int16 each).
STATISTICS_BYTES = 3 * LOW_BYTES


class Mode(IntEnum):
    """The kind of payload; the numbers are those of the header and of the hardware's job descriptor."""

    SFPR = 1
    SFPR_ZVC = 2
    JPEG_ACT = 3
    BRC = 4
    BYPASS = 5
    DIVISION = 6
    ACTNN = 7
    BLPA = 8
    AUTOQUANT = 9
    AUTOQUANTZ = 10
    MX = 11

    @property
    def label(self) -> str:
        """The name of the mode in configurations and commands (``sfpr+zvc``)."""
        return _MODE_LABELS[self]

    @classmethod
    def from_label(cls, label: str) -> Mode:
        """Return the mode of a label; ValueError names the allowed ones."""
        for mode, name in _MODE_LABELS.items():
            if name == label:
                return mode
        raise ValueError(unknown("mode", label, _MODE_LABELS.values()))

    @property
    def has_zvc(self) -> bool:
        """Return whether the payload is a sequence of ZVC blocks (8 mask bytes, then the nonzero bytes)."""
        return self in (Mode.SFPR_ZVC, Mode.JPEG_ACT, Mode.AUTOQUANTZ)

    @property
    def has_scales(self) -> bool:
        """Return whether values are scaled, so that the stream carries reciprocals."""
        return self not in (Mode.BRC, Mode.BYPASS, Mode.MX)

    @property
    def is_flat(self) -> bool:
        """Return whether a tensor of any shape is one sequence of values, without channels."""
        return self is Mode.ACTNN or not self.has_scales

    @property
    def in_tiles(self) -> bool:
        """Return whether values travel in 8x8 blocks of the matrix rather than in rows."""
        return self in (Mode.JPEG_ACT, Mode.DIVISION, Mode.ACTNN)

    @property
    def has_dct(self) -> bool:
        """Return whether blocks are transformed, so that the stream carries a shift table."""
        return self is Mode.JPEG_ACT

    @property
    def is_affine(self) -> bool:
        """Return whether values pass the affine quantiser (:mod:`cdu_spec.affine`) on their way to 1, 2, 4 or 8 bits."""
        return Mode.DIVISION <= self <= Mode.AUTOQUANTZ

    @property
    def has_offsets(self) -> bool:
        """Return whether every scale comes with an offset (BLPA)."""
        return self is Mode.BLPA

    @property
    def has_ranges(self) -> bool:
        """Return whether all or some blocks begin with a range."""
        return self in (Mode.DIVISION, Mode.ACTNN)

    @property
    def whole_beats(self) -> int:
        """Rows of 8 values into which every job divides: those of a block in modes that consist of blocks, else 1."""
        return MX_VALUES // LANES if self is Mode.MX else BLOCK_SIDE if self.has_zvc or self.in_tiles else 1

    @property
    def max_block_bytes(self) -> int:
        """Bytes of the longest block of 64 values."""
        if self.has_zvc:
            return MAX_BLOCK_BYTES
        if self is Mode.BRC:
            return BLOCK_SIDE
        return BLOCK_VALUES + (RANGE_BYTES if self.has_ranges else 0)

    @property
    def draws(self) -> bool:
        """Return whether codes may be rounded stochastically."""
        return self.is_affine and not self.has_offsets


_MODE_LABELS = {
    Mode.SFPR: "sfpr",
    Mode.SFPR_ZVC: "sfpr+zvc",
    Mode.JPEG_ACT: "jpeg-act",
    Mode.BRC: "brc",
    Mode.BYPASS: "bypass",
    Mode.DIVISION: "division",
    Mode.ACTNN: "actnn",
    Mode.BLPA: "blpa",
    Mode.AUTOQUANT: "autoquant",
    Mode.AUTOQUANTZ: "autoquantz",
    Mode.MX: "mx",
}
#: The modes of JPEG-ACT, and bypass: the default modes of a unit.
JPEG_ACT_MODES = (Mode.SFPR, Mode.SFPR_ZVC, Mode.JPEG_ACT, Mode.BRC, Mode.BYPASS)
AFFINE_MODES = tuple(mode for mode in Mode if mode.is_affine)
RANGED_MODES = tuple(mode for mode in Mode if mode.has_ranges)
#: The codec whose stream belongs to no mode: only software reads and writes it.
JPEG_BASE = "jpeg-base"
#: The codec whose stream is that of mode jpeg-act with coder GMC.
JPEG_GMC = "jpeg-gmc"
#: Codecs whose stream is that of a mode; mode mx has one codec for each format.
MODE_CODECS = (*(mode.label for mode in Mode if mode is not Mode.MX), *MX_FORMATS)
#: Codecs that have a stream.
STREAM_NAMES = (*MODE_CODECS, JPEG_GMC, JPEG_BASE)


class Coder(IntEnum):
    """Coder of the quantised coefficients in mode jpeg-act; the numbers are those of the header."""

    ZVC = 0
    GMC = 1

    @property
    def label(self) -> str:
        """The name in configurations and commands."""
        return self.name.lower()

    @property
    def block_bounds(self) -> tuple[int, int]:
        """Least and greatest number of bytes of a block that a decoder accepts."""
        return (gmc.MIN_BLOCK_BYTES, gmc.MAX_BLOCK_BYTES) if self is Coder.GMC else (MASK_BYTES, MAX_BLOCK_BYTES)


class Dtype(IntEnum):
    """Number format of the original values."""

    FP32 = 0
    BF16 = 1
    FP16 = 2

    @property
    def label(self) -> str:
        """The name in configurations (``fp32``)."""
        return self.name.lower()

    @classmethod
    def from_label(cls, label: str) -> Dtype:
        """Return the format of a label; ValueError names the allowed ones."""
        try:
            return cls[label.upper()]
        except KeyError:
            raise ValueError(unknown("number format", label, [d.label for d in cls])) from None

    @property
    def bits(self) -> int:
        """Bits of one value."""
        return 32 if self is Dtype.FP32 else 16

    @property
    def exponent_bits(self) -> int:
        """Bits of the exponent field."""
        return 5 if self is Dtype.FP16 else 8

    @property
    def fraction_bits(self) -> int:
        """Bits of the fraction field, without the hidden bit."""
        return self.bits - 1 - self.exponent_bits
