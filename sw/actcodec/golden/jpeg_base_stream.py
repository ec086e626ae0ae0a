"""Stream of JPEG-BASE, byte for byte (docs/reference/bitstream.md, section 8). No hardware reads or writes it.

A stream is header, shape, divisors, Huffman tables, reciprocals, entropy-coded segment and CRC-32, all little endian, without
gaps.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import torch
from cdu_spec.bitstream import CRC_BYTES, RECIPROCAL_BYTES, BitstreamError
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.huffman import MAX_CODE_BITS, STANDARD, HuffmanTable, HuffmanTables
from cdu_spec.jpeg import MAX_AC_SIZE, MAX_DC_SIZE
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Dtype, Mode
from cdu_tools.texts import extents
from torch import Tensor

from actcodec.golden.bitstream import check_reciprocals, checksum, numbers, payload_of, with_checksum
from actcodec.golden.checks import require

MAGIC = b"CDJ\x1a"
VERSION = 1
#: Fields: magic, version, number format, const_bits, pass1_bits, kind of tables, three reserved, payload bytes.
_HEADER = struct.Struct("<4s8BQ")
_SHAPE = struct.Struct("<4I")
_FIXED_BYTES = _HEADER.size + _SHAPE.size + BLOCK_VALUES
_STANDARD_TABLES, _OWN_TABLES = 0, 1
#: Fewest and most bits of a block: a DC and an AC code of one bit; the longest codes and values everywhere.
_LEAST_BITS = 2
_MOST_BITS = MAX_CODE_BITS + MAX_DC_SIZE + (BLOCK_VALUES - 1) * (MAX_CODE_BITS + MAX_AC_SIZE)


@dataclass(frozen=True)
class JpegBaseHeader:
    """Content of a stream before the reciprocals; every instance is valid (BitstreamError otherwise)."""

    dtype: Dtype
    shape: tuple[int, ...]  #: (N, C, H, W)
    payload_bytes: int
    const_bits: int
    pass1_bits: int
    divisors: tuple[int, ...]  #: 64 divisors 1..255 in zig-zag order
    tables: HuffmanTables = STANDARD

    version: ClassVar[int] = VERSION

    def __post_init__(self) -> None:
        if len(self.shape) != 4 or not all(1 <= extent < 1 << 32 for extent in self.shape):
            raise BitstreamError(
                f"shape {extents(self.shape)} does not fit the format: (N, C, H, W), extents 1 to 2**32 - 1, does"
            )
        if not (8 <= self.const_bits <= 13 and 0 <= self.pass1_bits <= 4):
            raise BitstreamError(f"DCT precision {self.const_bits}/{self.pass1_bits} is not allowed")
        if len(self.divisors) != BLOCK_VALUES or not all(1 <= divisor <= 255 for divisor in self.divisors):
            raise BitstreamError("the quantisation table is not allowed: it needs 64 divisors from 1 to 255")
        least, most = -(-self.view.blocks * _LEAST_BITS // 8), 2 * -(-self.view.blocks * _MOST_BITS // 8)
        if not least <= self.payload_bytes <= most:
            raise BitstreamError(
                f"{self.payload_bytes} payload bytes cannot hold shape {extents(self.shape)}: {least} to {most} bytes can"
            )

    @property
    def view(self) -> MatrixView:
        """Return the matrix that the blocks cover, viewed as in mode jpeg-act."""
        return MatrixView.of(self.shape, Mode.JPEG_ACT)

    @property
    def sections(self) -> dict[str, int]:
        """Bytes of each section of the stream, in order."""
        return {
            "header": _HEADER.size,
            "shape": _SHAPE.size,
            "divisors": BLOCK_VALUES,
            "Huffman tables": 0 if self.tables == STANDARD else self.tables.dc.nbytes + self.tables.ac.nbytes,
            "reciprocals": self.shape[1] * RECIPROCAL_BYTES,
            "payload": self.payload_bytes,
            "checksum": CRC_BYTES,
        }

    @property
    def stream_bytes(self) -> int:
        """Return the length of the whole stream."""
        return sum(self.sections.values())

    @property
    def tensor_bytes(self) -> int:
        """Return the bytes of the tensor in its original number format."""
        return prod(self.shape) * self.dtype.bits // 8


def serialise(header: JpegBaseHeader, reciprocals: Tensor, payload: Tensor) -> Iterator[memoryview]:
    """Yield one stream in pieces.

    Parameters
    ----------
    header
        Header, which determines the length of every section.
    reciprocals
        float32 (channels,).
    payload
        uint8 (header.payload_bytes,): the entropy-coded segment.
    """
    require("reciprocals", reciprocals, (torch.float32,), (header.shape[1],))
    require("payload", payload, (torch.uint8,), (header.payload_bytes,))
    own = header.tables != STANDARD
    kind = _OWN_TABLES if own else _STANDARD_TABLES
    precision = (header.const_bits, header.pass1_bits)
    fixed = _HEADER.pack(MAGIC, VERSION, header.dtype, *precision, kind, 0, 0, 0, header.payload_bytes)
    tables = header.tables.dc.pack() + header.tables.ac.pack() if own else b""
    sections = (fixed, _SHAPE.pack(*header.shape), bytes(header.divisors), tables)
    return with_checksum(*sections, reciprocals.cpu().numpy().astype("<f4").tobytes(), payload.cpu().contiguous().numpy().data)


def parse(stream: bytes | memoryview) -> tuple[JpegBaseHeader, Tensor, Tensor]:
    """Return header, reciprocals and payload of a stream, on the CPU.

    Raises BitstreamError unless lengths, checksum, tables and the range of every reciprocal are right. Only decoding checks the
    payload's blocks.
    """
    header, place = _read_header(stream)
    if len(stream) != header.stream_bytes:
        raise BitstreamError(f"corrupted or truncated stream: {len(stream)} bytes, but its header says {header.stream_bytes}")
    view = memoryview(stream)
    if checksum(view[:-CRC_BYTES]) != int.from_bytes(view[-CRC_BYTES:], "little"):
        raise BitstreamError("corrupted stream: the checksum does not match")
    payload_at = place + header.shape[1] * RECIPROCAL_BYTES
    reciprocals = numbers(view[place:payload_at], torch.float32)
    check_reciprocals(reciprocals, Mode.JPEG_ACT)
    return header, reciprocals, payload_of(view[payload_at:-CRC_BYTES])


def unpack_start(stream: bytes | memoryview) -> JpegBaseHeader:
    """Return the header from the start of a stream, whose rest may be missing; raise BitstreamError if there is none."""
    return _read_header(stream)[0]


def _read_header(stream: bytes | memoryview) -> tuple[JpegBaseHeader, int]:
    """Return the header, and where the reciprocals begin."""
    if len(stream) < _FIXED_BYTES:
        raise BitstreamError(f"truncated stream: {len(stream)} bytes are fewer than a header of {_FIXED_BYTES}")
    magic, version, dtype, const_bits, pass1_bits, kind, *reserved, payload_bytes = _HEADER.unpack_from(stream)
    if magic != MAGIC:
        raise BitstreamError("not a stream of jpeg-base: it does not begin with the magic bytes")
    if version != VERSION:
        raise BitstreamError(f"stream version {version} is not known: this software reads version {VERSION}")
    if dtype not in list(Dtype):
        raise BitstreamError(f"corrupted stream: number format {dtype} does not exist")
    if kind not in (_STANDARD_TABLES, _OWN_TABLES) or any(reserved):
        raise BitstreamError("corrupted stream: reserved header bits are not zero")
    tables, place = STANDARD, _FIXED_BYTES
    if kind == _OWN_TABLES:
        dc, place = _read_table(stream, place)
        ac, place = _read_table(stream, place)
        tables = _tables(dc, ac)
    divisors = tuple(stream[_FIXED_BYTES - BLOCK_VALUES : _FIXED_BYTES])
    shape = _SHAPE.unpack_from(stream, _HEADER.size)
    return JpegBaseHeader(Dtype(dtype), shape, payload_bytes, const_bits, pass1_bits, divisors, tables), place


def _read_table(stream: bytes | memoryview, place: int) -> tuple[tuple[Sequence[int], Sequence[int]], int]:
    """Return counts and symbols of a table, and where it ends."""
    counts = stream[place : place + MAX_CODE_BITS]
    end = place + MAX_CODE_BITS + sum(counts)
    return (counts, stream[place + MAX_CODE_BITS : end]), end


def _tables(dc: tuple[Sequence[int], Sequence[int]], ac: tuple[Sequence[int], Sequence[int]]) -> HuffmanTables:
    """Return tables from counts and symbols; raise BitstreamError for invalid tables, and for the standard ones (kind 0)."""
    try:
        first, second = (HuffmanTable(tuple(counts), tuple(symbols)) for counts, symbols in (dc, ac))
        tables = HuffmanTables(first, second)
    except ValueError as error:
        raise BitstreamError(f"corrupted stream: {error}") from None
    if tables == STANDARD:
        raise BitstreamError("corrupted stream: it carries the standard Huffman tables")
    return tables
