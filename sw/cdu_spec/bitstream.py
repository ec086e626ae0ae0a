"""The compressed form of one tensor, byte for byte: modes, matrix view, header, sections.

``docs/reference/bitstream.md`` describes the same format in prose. A stream is

    header | shape | shift table | reciprocals | offsets | payload | CRC-32

all little endian, without gaps. Only the payload crosses the data ports of the hardware; a driver writes the other sections to
the registers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import prod
from typing import Any

from cdu_tools.errors import UserError

from cdu_spec import gmc
from cdu_spec.affine import BASE_BITS, AffineSettings
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES, SHIFT_BITS, TILE_BLOCKS, TILE_COLUMNS, VALUE_BITS
from cdu_spec.mx import MX_FORMATS, MX_VALUES, MxSettings
from cdu_spec.reconstruction import MAX_POINT


class BitstreamError(UserError, ValueError):
    """A stream that is corrupted, truncated or not a stream at all; the message says what is wrong."""


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
        raise ValueError(f"unknown mode {label!r}: use {', '.join(_MODE_LABELS.values())}")

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
            raise ValueError(f"unknown number format {label!r}: use {', '.join(d.label for d in cls)}") from None

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


@dataclass(frozen=True)
class MatrixView:
    """A tensor viewed as the matrix that passes through the unit, rows first.

    ``jpeg-act`` and ``division`` view (N, C, H, W) as (N*C*H, W) (JPEG-ACT, "alignment buffer"); ``actnn`` views any tensor as
    rows of 32 consecutive values, so that a tile holds a group of 256; the other modes, which need no neighbours, use
    (N*C, H*W), so that small maps are not padded. Rows are padded at the right to whole beats of 8 values, the matrix at the
    bottom to whole strips of 8 rows (modes in tiles) or the sequence at its end to whole blocks of 8 beats (modes with
    masks) or 4 (mx). A scale belongs to ``channel_rows`` consecutive rows.

    Parameters
    ----------
    rows, columns
        Size of the matrix without padding (actnn: including the values that fill the last row).
    channels
        Distinct scales; the scale of row r is number ``(r // channel_rows) % channels``.
    channel_rows
        Consecutive rows per scale.
    mode
        The mode whose padding rules apply.
    """

    rows: int
    columns: int
    channels: int
    channel_rows: int
    mode: Mode

    @classmethod
    def of(cls, shape: Sequence[int], mode: Mode) -> MatrixView:
        """Return the view of a tensor of ``shape`` (rank >= 1, no zero extent) in ``mode``.

        Axis 1 is the channel axis of tensors of rank 3 and more. The tensor is one row with one scale if it has no channel
        axis (rank 1 and 2), if its maps have fewer than 8 values, and in ``brc``, ``bypass`` and ``mx`` (no scales of
        channels).
        """
        if mode is Mode.ACTNN:
            rows = -(-prod(shape) // TILE_COLUMNS)
            return cls(rows, TILE_COLUMNS, 1, -(-rows // BLOCK_SIDE) * BLOCK_SIDE, mode)
        if mode.in_tiles:
            if len(shape) != 4:
                other = Mode.ACTNN if mode.is_affine else Mode.SFPR
                raise ValueError(f"{mode.label} takes tensors of shape (N, C, H, W), not {tuple(shape)}: use {other.label}")
            n, c, h, w = shape
            return cls(n * c * h, w, c, h, mode)
        inner = prod(shape[2:])
        if not mode.is_flat and len(shape) >= 3 and inner >= LANES:
            return cls(shape[0] * shape[1], inner, shape[1], 1, mode)
        return cls(1, prod(shape), 1, 1, mode)

    @property
    def row_beats(self) -> int:
        """Beats of 8 values per padded row."""
        return -(-self.columns // LANES)

    @property
    def padded_rows(self) -> int:
        """Rows including the padding at the bottom."""
        return -(-self.rows // BLOCK_SIDE) * BLOCK_SIDE if self.mode.in_tiles else self.rows

    @property
    def beats(self) -> int:
        """Beats of 8 values of the whole job, all padding included."""
        beats, whole = self.padded_rows * self.row_beats, self.mode.whole_beats
        return -(-beats // whole) * whole

    @property
    def blocks(self) -> int:
        """Blocks of 64 values of the whole job (modes with masks or in tiles)."""
        return self.beats // BLOCK_SIDE

    @property
    def scale_groups(self) -> int:
        """Scales that the job consumes in order, including those of groups that begin in the padding."""
        return -(-self.beats // (self.row_beats * self.channel_rows))

    def payload_bounds(
        self, dtype: Dtype, settings: AffineSettings | None = None, coder: Coder = Coder.ZVC, mx: MxSettings | None = None
    ) -> tuple[int, int]:
        """Return the least and greatest number of payload bytes for this view with values of a number format.

        ``settings`` go with the affine modes, ``coder`` with jpeg-act, ``mx`` with that mode.
        """
        if self.mode is Mode.MX:
            assert mx is not None, "mode mx needs a format"
            size = self.beats // self.mode.whole_beats * mx.kind.block_bytes
            return size, size
        if self.mode.is_affine:
            assert settings is not None, "an affine mode needs settings"
            codes = 0 if settings.statistics else self.beats * settings.bits
            if self.mode is Mode.AUTOQUANTZ:
                return self.blocks * MASK_BYTES, self.blocks * MASK_BYTES + codes
            heads = self.blocks // (TILE_BLOCKS if self.mode is Mode.ACTNN else 1) if self.mode.in_tiles else 0
            size = codes + heads * head_bytes(self.mode, settings)
            return size, size
        if self.mode.has_zvc:
            least, most = coder.block_bounds
            return self.blocks * least, self.blocks * most
        bits = {Mode.BRC: 1, Mode.BYPASS: dtype.bits}.get(self.mode, VALUE_BITS)
        size = self.beats * LANES * bits // 8
        return size, size


def head_bytes(mode: Mode, settings: AffineSettings) -> int:
    """Return the bytes before the codes of a block of an affine mode that begins with its range: low or mean, and the step.

    In mode actnn one block in four begins in this way. In a first pass a block consists of its statistics alone.
    """
    if not mode.in_tiles:
        return 0
    if settings.statistics:
        return STATISTICS_BYTES
    return LOW_BYTES if mode is Mode.DIVISION and not settings.block_range else RANGE_BYTES


def check_settings(mode: Mode, settings: AffineSettings | None) -> None:
    """Raise UserError for settings that do not fit a mode."""
    if (settings is not None) != mode.is_affine:
        raise UserError(f"mode {mode.label} takes {'' if mode.is_affine else 'no '}settings of the affine quantiser")
    if settings is None:
        return
    if settings.block_range and mode is not Mode.DIVISION:
        raise UserError(f"the range of a block is not a choice of mode {mode.label}: use it with division")
    if settings.statistics and (mode is not Mode.DIVISION or settings.block_range):
        raise UserError("statistics come from mode division with the channel's range: use that")
    found = mode is Mode.ACTNN or settings.block_range
    if found and settings.step_log2:
        raise UserError(f"step_log2 = {settings.step_log2} is not allowed where the step is found: use 0")
    if mode is Mode.DIVISION and not (found or settings.statistics or settings.step_log2):
        raise UserError("step_log2 = 0 is not allowed in division with the channel's range: use 1 or more")


def check_mx(mode: Mode, mx: MxSettings | None) -> None:
    """Raise UserError for settings of mode mx with another mode, and for mode mx without settings."""
    if (mx is not None) != (mode is Mode.MX):
        raise UserError(f"mode {mode.label} takes {'a' if mode is Mode.MX else 'no'} format of MX")


MAGIC = b"CDU\x1a"
#: Version of a stream of jpeg-act with another coder than ZVC or with a reconstruction point, and version of all others.
VERSION, FIRST_VERSION = 2, 1
MAX_RANK = 8
#: Bytes of a ZVC mask.
MASK_BYTES = BLOCK_VALUES // 8
#: Bytes of a ZVC block without a zero, the longest block.
MAX_BLOCK_BYTES = MASK_BYTES + BLOCK_VALUES
#: Bytes of the shift table: 64 entries of 3 bits, entry i at bits 3*i .. 3*i+2.
SHIFT_TABLE_BYTES = BLOCK_VALUES * SHIFT_BITS // 8
#: Bytes of one reciprocal (float32).
RECIPROCAL_BYTES = 4
#: Bytes of one offset (int16).
OFFSET_BYTES = BASE_BITS // 8
#: Bytes of the least value or mean before a block (int16), and of its step (mantissa, exponent).
LOW_BYTES, STEP_BYTES = BASE_BITS // 8, 2
RANGE_BYTES = LOW_BYTES + STEP_BYTES
#: Bytes of the statistics of a block: mean, least and greatest value (int16 each).
STATISTICS_BYTES = 3 * LOW_BYTES
CRC_BYTES = 4
#: Row-major index ``8 * v + u`` of the coefficient at each position of a jpeg-act block. The transform takes rows
#: first and columns second, so its results leave it column by column, and blocks are stored that way; the shift table too.
COEFFICIENT_ORDER = tuple(BLOCK_SIDE * (place % BLOCK_SIDE) + place // BLOCK_SIDE for place in range(BLOCK_VALUES))
#: magic, version, mode, dtype, rank, const_bits, pass1_bits, bits (or coder, format), step (or reconstruction point), payload
#: bytes.
_HEADER = struct.Struct("<4s8BQ")
#: The step's byte: ``step_log2`` in the low bits, and a flag for ranges of blocks.
_STEP_LOG2, _BLOCK_RANGE = 0x0F, 0x80
HEADER_BYTES = _HEADER.size
_EXTENT = struct.Struct("<I")


@dataclass(frozen=True)
class Header:
    """Header and shape of a stream; every instance is valid (BitstreamError otherwise)."""

    mode: Mode
    dtype: Dtype
    shape: tuple[int, ...]
    payload_bytes: int
    const_bits: int = 0  #: DCT precision, zero in modes without a DCT
    pass1_bits: int = 0
    bits: int = 0  #: bits per code, zero in modes that are not affine
    step_log2: int = 0  #: as in :class:`~cdu_spec.affine.AffineSettings`
    block_range: bool = False
    coder: Coder = Coder.ZVC  #: coder of jpeg-act
    point: int = 0  #: reconstruction point of jpeg-act in eighths of a step, 0 to 4
    mx: MxSettings | None = None  #: format of mode mx; the rule of its scales is not in a stream

    @classmethod
    def of_settings(
        cls, mode: Mode, dtype: Dtype, shape: Sequence[int], payload_bytes: int, settings: AffineSettings
    ) -> Header:
        """Return the header of a stream of an affine mode; UserError for statistics, from which no tensor can be decoded."""
        if settings.statistics:
            raise UserError("statistics are no stream: they are for the scales of the pass that follows")
        where = (settings.bits, settings.step_log2, settings.block_range)
        return cls(mode, dtype, tuple(shape), payload_bytes, 0, 0, *where)

    def __post_init__(self) -> None:
        if not 1 <= len(self.shape) <= MAX_RANK:
            raise BitstreamError(f"a tensor of rank {len(self.shape)} does not fit the format: ranks 1 to {MAX_RANK} do")
        if not all(1 <= extent < 1 << 32 for extent in self.shape):
            raise BitstreamError(f"shape {self.shape} does not fit the format: extents 1 to 2**32 - 1 do")
        if self.mode.in_tiles and self.mode is not Mode.ACTNN and len(self.shape) != 4:
            raise BitstreamError(f"shape {self.shape} is not allowed in mode {self.mode.label}: it needs rank 4")
        if self.mode.has_dct:
            if not (8 <= self.const_bits <= 13 and 0 <= self.pass1_bits <= 4):
                raise BitstreamError(f"DCT precision {self.const_bits}/{self.pass1_bits} is not allowed")
        elif self.const_bits or self.pass1_bits:
            raise BitstreamError(f"mode {self.mode.label} has no DCT precision, but the header gives one")
        if self.version == VERSION and not self.mode.has_dct:
            raise BitstreamError(f"mode {self.mode.label} has neither coder nor reconstruction point, but the header gives one")
        if not 0 <= self.point <= MAX_POINT:
            raise BitstreamError(
                f"reconstruction point {self.point} is not allowed: it is a number of eighths, 0 to {MAX_POINT}"
            )
        try:
            check_settings(self.mode, self.settings)
            check_mx(self.mode, self.mx)
        except UserError as error:
            raise BitstreamError(f"the header's quantiser is not allowed: {error}") from None
        least, most = self.view.payload_bounds(self.dtype, self.settings, self.coder, self.mx)
        if not least <= self.payload_bytes <= most:
            raise BitstreamError(
                f"{self.payload_bytes} payload bytes cannot hold shape {self.shape} in mode {self.mode.label}: "
                f"{least} to {most} bytes can"
            )

    @property
    def version(self) -> int:
        """The version of the stream, the lowest that can express this header."""
        return VERSION if self.coder or self.point else FIRST_VERSION

    @property
    def codec(self) -> str:
        """Name of the codec that writes such streams."""
        return self.mx.format if self.mx else JPEG_GMC if self.coder is Coder.GMC else self.mode.label

    @property
    def settings(self) -> AffineSettings | None:
        """The quantiser as far as a decoder needs it: without seed and rounding. None in modes that are not affine."""
        if not (self.mode.is_affine or self.bits or self.step_log2 or self.block_range):
            return None
        return AffineSettings(self.bits, self.step_log2, stochastic=False, block_range=self.block_range)

    @property
    def view(self) -> MatrixView:
        """The matrix that the payload describes."""
        return MatrixView.of(self.shape, self.mode)

    @property
    def shift_table_bytes(self) -> int:
        """Bytes of the shift table section."""
        return SHIFT_TABLE_BYTES if self.mode.has_dct else 0

    @property
    def reciprocal_count(self) -> int:
        """Entries of the reciprocals section."""
        return self.view.channels if self.mode.has_scales else 0

    @property
    def offset_count(self) -> int:
        """Entries of the offsets section."""
        return self.view.channels if self.mode.has_offsets else 0

    @property
    def payload_offset(self) -> int:
        """Offset of the payload from the start of the stream."""
        return self.stream_bytes - self.payload_bytes - CRC_BYTES

    @property
    def sections(self) -> dict[str, int]:
        """Bytes of each section of the stream, in order; 0 for a section that the mode does not have."""
        return {
            "header": HEADER_BYTES,
            "shape": len(self.shape) * _EXTENT.size,
            "shift table": self.shift_table_bytes,
            "reciprocals": self.reciprocal_count * RECIPROCAL_BYTES,
            "offsets": self.offset_count * OFFSET_BYTES,
            "payload": self.payload_bytes,
            "checksum": CRC_BYTES,
        }

    @property
    def stream_bytes(self) -> int:
        """Length of the whole stream."""
        return sum(self.sections.values())

    @property
    def tensor_bytes(self) -> int:
        """Bytes of the tensor in its original number format."""
        return prod(self.shape) * self.dtype.bits // 8

    def pack(self) -> bytes:
        """Return the header and the shape as bytes."""
        step = self.step_log2 | (_BLOCK_RANGE if self.block_range else 0)
        quantizer = (
            (self.coder, self.point) if self.version == VERSION else (self.mx.kind.number if self.mx else self.bits, step)
        )
        numbers = (self.dtype, len(self.shape), self.const_bits, self.pass1_bits, *quantizer, self.payload_bytes)
        fixed = _HEADER.pack(MAGIC, self.version, self.mode, *numbers)
        return fixed + b"".join(_EXTENT.pack(extent) for extent in self.shape)

    @classmethod
    def unpack(cls, stream: bytes | memoryview) -> Header:
        """Read header and shape from the start of a stream, and check the length of the stream against them.

        The CRC is not checked here. Raises BitstreamError unless the input is exactly one stream.
        """
        header = cls.unpack_start(stream)
        if len(stream) != header.stream_bytes:
            raise BitstreamError(
                f"corrupted or truncated stream: {len(stream)} bytes, but its header says {header.stream_bytes}"
            )
        return header

    @classmethod
    def unpack_start(cls, stream: bytes | memoryview) -> Header:
        """Read header and shape from the start of a stream that may be incomplete; BitstreamError as in :meth:`unpack`."""
        if len(stream) < HEADER_BYTES:
            raise BitstreamError(f"truncated stream: {len(stream)} bytes are fewer than a header of {HEADER_BYTES}")
        magic, version, mode, dtype, rank, const_bits, pass1_bits, bits, step, payload_bytes = _HEADER.unpack_from(stream)
        if magic != MAGIC:
            raise BitstreamError("not a CDU stream: it does not begin with the magic bytes")
        if version not in (FIRST_VERSION, VERSION):
            raise BitstreamError(
                f"stream version {version} is not known: this software reads versions {FIRST_VERSION} and {VERSION}"
            )
        if mode not in list(Mode):
            raise BitstreamError(f"corrupted stream: mode {mode} does not exist")
        quantizer = (_coder_bytes if version == VERSION else _step_bytes)(Mode(mode), bits, step)
        if dtype not in list(Dtype):
            raise BitstreamError(f"corrupted stream: number format {dtype} does not exist")
        if not 1 <= rank <= MAX_RANK or len(stream) < HEADER_BYTES + rank * _EXTENT.size:
            raise BitstreamError(f"corrupted or truncated stream: no room for a shape of rank {rank}")
        shape = tuple(_EXTENT.unpack_from(stream, HEADER_BYTES + i * _EXTENT.size)[0] for i in range(rank))
        return cls(Mode(mode), Dtype(dtype), shape, payload_bytes, const_bits, pass1_bits, **quantizer)


def _step_bytes(mode: Mode, bits: int, step: int) -> dict[str, Any]:
    """Decode bytes 10 and 11 of a header of version 1."""
    if mode is Mode.MX:
        names = [name for name, kind in MX_FORMATS.items() if kind.number == bits]
        if not names or step:
            raise BitstreamError(
                f"corrupted stream: format {bits} of mode mx does not exist, or reserved header bits are not zero"
            )
        return {"mx": MxSettings(names[0])}
    if step & ~(_STEP_LOG2 | _BLOCK_RANGE) or (not mode.is_affine and (bits or step)):
        raise BitstreamError("corrupted stream: reserved header bits are not zero")
    return {"bits": bits, "step_log2": step & _STEP_LOG2, "block_range": bool(step & _BLOCK_RANGE)}


def _coder_bytes(mode: Mode, coder: int, point: int) -> dict[str, Any]:
    """Decode bytes 10 and 11 of a header of version 2."""
    if not mode.has_dct or not (coder or point):
        raise BitstreamError(f"stream version {VERSION} is not known for what this one says: it is version {FIRST_VERSION}")
    if coder not in list(Coder):
        raise BitstreamError(f"corrupted stream: coder {coder} does not exist")
    return {"coder": Coder(coder), "point": point}


def pack_shifts(shifts: Sequence[int]) -> bytes:
    """Pack 64 shifts (0..7, coefficient order of the payload) into the 24 bytes of the shift table section."""
    word = sum(shift << (SHIFT_BITS * i) for i, shift in enumerate(shifts))
    return word.to_bytes(SHIFT_TABLE_BYTES, "little")


def unpack_shifts(section: bytes | memoryview) -> tuple[int, ...]:
    """Unpack the 64 shifts of a shift table section."""
    word = int.from_bytes(section, "little")
    return tuple(word >> (SHIFT_BITS * i) & ((1 << SHIFT_BITS) - 1) for i in range(BLOCK_VALUES))
