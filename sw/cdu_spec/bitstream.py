"""The compressed form of one tensor, byte for byte: header and sections.

``docs/reference/bitstream.md`` describes the same format in prose. A stream is

    header | shape | shift table | reciprocals | offsets | payload | CRC-32

all little endian, without gaps. Only the payload crosses the data ports of the hardware; a driver writes the other sections to
the registers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from cdu_tools.errors import UserError
from cdu_tools.texts import extents

from cdu_spec.affine import BASE_BITS, AffineSettings
from cdu_spec.coding import How, ShiftCoding, checked, coder_of, to_decode
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, SHIFT_BITS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import JPEG_GMC, Coder, Dtype, Mode
from cdu_spec.mx import MX_FORMATS, MxSettings


class BitstreamError(UserError, ValueError):
    """A stream that is corrupted, truncated or not a stream at all; the message says what is wrong."""


MAGIC = b"CDU\x1a"
#: Version of a stream of jpeg-act with another coder than ZVC or with a reconstruction point, and version of all others.
VERSION, FIRST_VERSION = 2, 1
MAX_RANK = 8
#: Bytes of the shift table: 64 entries of 3 bits, entry i at bits 3*i .. 3*i+2.
SHIFT_TABLE_BYTES = BLOCK_VALUES * SHIFT_BITS // 8
#: Bytes of one reciprocal (float32).
RECIPROCAL_BYTES = 4
#: Bytes of one offset (int16).
OFFSET_BYTES = BASE_BITS // 8
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
    how: How = None  #: settings of the mode, of which the header keeps what :func:`~cdu_spec.coding.to_decode` returns

    def __post_init__(self) -> None:
        if not 1 <= len(self.shape) <= MAX_RANK:
            raise BitstreamError(f"a tensor of rank {len(self.shape)} does not fit the format: ranks 1 to {MAX_RANK} do")
        if not all(1 <= extent < 1 << 32 for extent in self.shape):
            raise BitstreamError(f"shape {extents(self.shape)} does not fit the format: extents 1 to 2**32 - 1 do")
        if self.mode.in_tiles and self.mode is not Mode.ACTNN and len(self.shape) != 4:
            raise BitstreamError(f"shape {extents(self.shape)} is not allowed in mode {self.mode.label}: it needs rank 4")
        if self.mode.has_dct:
            if not (8 <= self.const_bits <= 13 and 0 <= self.pass1_bits <= 4):
                raise BitstreamError(f"DCT precision {self.const_bits}/{self.pass1_bits} is not allowed")
        elif self.const_bits or self.pass1_bits:
            raise BitstreamError(f"mode {self.mode.label} has no DCT precision, but the header gives one")
        try:
            object.__setattr__(self, "how", to_decode(checked(self.mode, self.how)))
        except UserError as error:
            raise _refused(error) from None
        least, most = self.view.payload_bounds(self.dtype, self.how)
        if not least <= self.payload_bytes <= most:
            raise BitstreamError(
                f"{self.payload_bytes} payload bytes cannot hold shape {extents(self.shape)} in mode {self.mode.label}: "
                f"{least} to {most} bytes can"
            )

    @property
    def version(self) -> int:
        """The version of the stream, the lowest that can express this header."""
        return VERSION if isinstance(self.how, ShiftCoding) and not self.how.is_published else FIRST_VERSION

    @property
    def codec(self) -> str:
        """Name of the codec that writes such streams."""
        if isinstance(self.how, MxSettings):
            return self.how.format
        return JPEG_GMC if coder_of(self.how) is Coder.GMC else self.mode.label

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
        numbers = (self.dtype, len(self.shape), self.const_bits, self.pass1_bits, *_bytes_of(self.how), self.payload_bytes)
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
        try:
            how = (_coding_of if version == VERSION else _settings_of)(Mode(mode), bits, step)
        except BitstreamError:
            raise
        except UserError as error:
            raise _refused(error) from None
        if dtype not in list(Dtype):
            raise BitstreamError(f"corrupted stream: number format {dtype} does not exist")
        if not 1 <= rank <= MAX_RANK or len(stream) < HEADER_BYTES + rank * _EXTENT.size:
            raise BitstreamError(f"corrupted or truncated stream: no room for a shape of rank {rank}")
        shape = tuple(_EXTENT.unpack_from(stream, HEADER_BYTES + i * _EXTENT.size)[0] for i in range(rank))
        return cls(Mode(mode), Dtype(dtype), shape, payload_bytes, const_bits, pass1_bits, how)


def _refused(error: UserError) -> BitstreamError:
    """Return the error of a header whose settings are not allowed."""
    return BitstreamError(f"the header's quantiser is not allowed: {error}")


def _bytes_of(how: How) -> tuple[int, int]:
    """Return bytes 10 and 11 of a header."""
    if isinstance(how, ShiftCoding):
        return how.coder, how.point
    if isinstance(how, AffineSettings):
        return how.bits, how.step_log2 | (_BLOCK_RANGE if how.block_range else 0)
    return (how.kind.number if how else 0), 0


def _settings_of(mode: Mode, bits: int, step: int) -> How:
    """Decode bytes 10 and 11 of a header of version 1."""
    if mode is Mode.MX:
        names = [name for name, kind in MX_FORMATS.items() if kind.number == bits]
        if not names or step:
            raise BitstreamError(
                f"corrupted stream: format {bits} of mode mx does not exist, or reserved header bits are not zero"
            )
        return MxSettings(names[0])
    if step & ~(_STEP_LOG2 | _BLOCK_RANGE) or (not mode.is_affine and (bits or step)):
        raise BitstreamError("corrupted stream: reserved header bits are not zero")
    if mode.is_affine:
        return AffineSettings(bits, step & _STEP_LOG2, stochastic=False, block_range=bool(step & _BLOCK_RANGE))
    return ShiftCoding() if mode.has_dct else None


def _coding_of(mode: Mode, coder: int, point: int) -> ShiftCoding:
    """Decode bytes 10 and 11 of a header of version 2."""
    if not mode.has_dct or not (coder or point):
        raise BitstreamError(f"stream version {VERSION} is not known for what this one says: it is version {FIRST_VERSION}")
    if coder not in list(Coder):
        raise BitstreamError(f"corrupted stream: coder {coder} does not exist")
    return ShiftCoding(Coder(coder), point)


def pack_shifts(shifts: Sequence[int]) -> bytes:
    """Pack 64 shifts (0..7, coefficient order of the payload) into the 24 bytes of the shift table section."""
    word = sum(shift << (SHIFT_BITS * i) for i, shift in enumerate(shifts))
    return word.to_bytes(SHIFT_TABLE_BYTES, "little")


def unpack_shifts(section: bytes | memoryview) -> tuple[int, ...]:
    """Unpack the 64 shifts of a shift table section."""
    word = int.from_bytes(section, "little")
    return tuple(word >> (SHIFT_BITS * i) & ((1 << SHIFT_BITS) - 1) for i in range(BLOCK_VALUES))
