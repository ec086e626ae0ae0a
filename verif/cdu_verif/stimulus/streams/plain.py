"""Streams with freely chosen fields, valid or not, and valid payloads of any mode and shape (bitstream.md, 1 to 4)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from random import Random
from typing import Any

SFPR, SFPR_ZVC, JPEG_ACT, BRC, BYPASS, DIVISION, ACTNN, BLPA, AUTOQUANT, AUTOQUANTZ, MX = range(1, 12)
MODES = range(1, 12)
AFFINE = (DIVISION, ACTNN, BLPA, AUTOQUANT, AUTOQUANTZ)
MASKED = (SFPR_ZVC, JPEG_ACT, AUTOQUANTZ)
#: Modes whose blocks may have a head with a range, and the bit of the header that enables it.
RANGED = ((DIVISION, 0x80), (ACTNN, 0))
BITS = (1, 2, 4, 8)
FORMATS = (0, 1, 2)
#: Bits of a code of mode mx by its format, and bits that one of its numbers lacks, so that it is neither infinite nor NaN.
MX_BITS, MX_FINITE = (8, 8, 8, 6, 6, 4), (0xFF, 0xFE, 0xFB, 0xFF, 0xFF, 0xFF)


@dataclass(frozen=True)
class PlainStream:
    """Fields of a stream; ``bytes(stream)`` packs them with the right checksum, whatever they are.

    ``rank`` and ``payload_bytes`` follow from the other fields unless they are given, ``behind`` is put between payload and
    checksum, ``crc`` is added to the checksum.
    """

    mode: int
    shape: tuple[int, ...]
    payload: bytes
    reciprocals: tuple[float, ...] = ()
    form: int = 0
    const_bits: int = 0
    pass1_bits: int = 0
    bits: int = 0  #: in mode mx the format
    step: int = 0  #: the header's byte 11
    table: bytes = b""
    offsets: tuple[int, ...] = ()
    magic: bytes = b"CDU\x1a"
    version: int = 1
    rank: int | None = None
    payload_bytes: int | None = None
    behind: bytes = b""
    crc: int = 0

    def __bytes__(self) -> bytes:
        rank = len(self.shape) if self.rank is None else self.rank
        size = len(self.payload) if self.payload_bytes is None else self.payload_bytes
        header = struct.pack(
            "<4s8BQ",
            *(self.magic, self.version, self.mode, self.form, rank),
            *(self.const_bits, self.pass1_bits, self.bits, self.step, size),
        )
        numbers = struct.pack(f"<{len(self.shape)}I", *self.shape) + self.table
        numbers += struct.pack(f"<{len(self.reciprocals)}f", *self.reciprocals)
        numbers += struct.pack(f"<{len(self.offsets)}h", *self.offsets)
        body = header + numbers + self.payload + self.behind
        return body + struct.pack("<I", (zlib.crc32(body) + self.crc) % 2**32)

    def but(self, **fields: Any) -> PlainStream:
        """Return the stream with other values of some fields."""
        return replace(self, **fields)


@dataclass(frozen=True)
class Matrix:
    """Matrix of a shape (section 2)."""

    rows: int
    columns: int
    channels: int
    channel_rows: int
    row_beats: int
    beats: int

    @classmethod
    def of(cls, mode: int, shape: Sequence[int]) -> Matrix:
        """Return the matrix, with the beats of the whole payload."""
        count = prod(shape)
        rows, columns, channels, channel_rows = 1, count, 1, 1
        if mode in (JPEG_ACT, DIVISION):
            n, c, h, w = shape
            rows, columns, channels, channel_rows = n * c * h, w, c, h
        elif mode == ACTNN:
            rows, columns = -(-count // 32), 32
            channel_rows = 8 * -(-rows // 8)
        elif mode not in (BRC, BYPASS, MX) and len(shape) >= 3 and prod(shape[2:]) >= 8:
            rows, columns, channels = shape[0] * shape[1], prod(shape[2:]), shape[1]
        row_beats = -(-columns // 8)
        beats = row_beats * (8 * -(-rows // 8) if mode in (JPEG_ACT, DIVISION, ACTNN) else rows)
        if mode in (SFPR_ZVC, AUTOQUANTZ):
            beats = 8 * -(-beats // 8)
        if mode == MX:
            beats = 4 * -(-beats // 4)
        return cls(rows, columns, channels, channel_rows, row_beats, beats)


def row(codes: Sequence[int], bits: int) -> bytes:
    """Return a row of codes, or a short one, padded with zero bits."""
    return sum(code << bits * place for place, code in enumerate(codes)).to_bytes(-(-len(codes) * bits // 8), "little")


def masked(codes: Sequence[int], bits: int = 8, keep: Sequence[int] = ()) -> bytes:
    """Return a block of 64 codes with its mask: the codes that are not 0, and those at the places ``keep``."""
    kept = [code != 0 or place in keep for place, code in enumerate(codes)]
    groups = range(0, 64, 8)
    masks = bytes(sum(kept[first + i] << i for i in range(8)) for first in groups)
    rows = [[codes[first + i] for i in range(8) if kept[first + i]] for first in groups]
    return masks + b"".join(row(some, bits) for some in rows)


def head(low: int, mantissa: int, exponent: int) -> bytes:
    """Return a head with a range."""
    return struct.pack("<hBB", low, mantissa, exponent)


def heads(stream: PlainStream) -> int:
    """Return the number of heads with a range in a payload."""
    return Matrix.of(stream.mode, stream.shape).beats // (8 if stream.mode == DIVISION else 32)


def with_head(stream: PlainStream, place: int, content: bytes) -> PlainStream:
    """Return the stream with another head before block or group number ``place``."""
    begin = place * (len(stream.payload) // heads(stream))
    return stream.but(payload=stream.payload[:begin] + content + stream.payload[begin + len(content) :])


def payload(mode: int, shape: Sequence[int], form: int = 0, bits: int = 0, step: int = 0, seed: int = 0) -> bytes:
    """Return a valid payload with random codes."""
    rng = Random(f"{mode} {shape} {bits} {step} {seed}")
    beats = Matrix.of(mode, shape).beats
    if mode in MASKED:
        width = bits or 8
        zeros = rng.random()
        values = [0 if rng.random() < zeros else rng.getrandbits(width) for _ in range(8 * beats)]
        return b"".join(masked(values[first : first + 64], width) for first in range(0, 8 * beats, 64))
    if mode in (DIVISION, ACTNN):
        ranged = mode == ACTNN or step & 0x80
        rows_each = 8 if mode == DIVISION else 32
        parts = []
        for _ in range(beats // rows_each):
            low = rng.randint(-32768, 32767)
            greatest = min((65535 - low) // (2**bits - 1), 255)
            parts.append(head(low, rng.randint(1, greatest), 0) if ranged else struct.pack("<h", low))
            parts.append(rng.randbytes(rows_each * bits))
        return b"".join(parts)
    if mode == MX:
        codes = [rng.getrandbits(MX_BITS[bits]) & MX_FINITE[bits] for _ in range(8 * beats)]
        rows = [row(codes[first : first + 8], MX_BITS[bits]) for first in range(0, 8 * beats, 8)]
        return b"".join(bytes([rng.randint(100, 150)]) + b"".join(rows[first : first + 4]) for first in range(0, beats, 4))
    if mode == BYPASS:
        # Numbers without NaN, so that values can be compared.
        size = 2 if form else 4
        return b"".join(bytes([*rng.randbytes(size - 1), rng.randrange(0x40)]) for _ in range(8 * beats))
    return rng.randbytes({SFPR: 8, BRC: 1}.get(mode, bits) * beats)


#: A shape of each mode that has padding if the mode can have some, and more than one channel.
SHAPES = dict.fromkeys(MODES, (2, 3, 9)) | {
    JPEG_ACT: (1, 3, 3, 13),
    DIVISION: (1, 3, 3, 13),
    ACTNN: (300,),
    BRC: (19,),
    MX: (43,),
    BYPASS: (11,),
}


def example(
    mode: int, shape: Sequence[int] = (), *, form: int = 0, bits: int | None = None, step: int | None = None, seed: int = 0
) -> PlainStream:
    """Return a stream that keeps every rule.

    Parameters
    ----------
    mode
        Number of the mode.
    shape
        Shape of the tensor; default: that of :data:`SHAPES`.
    form
        Number format.
    bits, step
        Settings of affine modes; default: the mode's usual ones. ``bits`` of mode mx is its format.
    seed
        Seed of the codes.
    """
    shape = tuple(shape) or SHAPES[mode]
    affine = mode in AFFINE
    bits = (2 if bits is None else bits) if affine or mode == MX else 0
    step = ({DIVISION: 12 - bits, ACTNN: 0}.get(mode, 15 - bits) if step is None else step) if affine else 0
    view, rng = Matrix.of(mode, shape), Random(f"{mode} {shape} {seed}")
    scaled = mode not in (BRC, BYPASS, MX)
    return PlainStream(
        mode,
        shape,
        payload(mode, shape, form, bits, step, seed),
        tuple(2.0 ** -rng.randint(5, 9) * rng.randint(65, 128) / 64 for _ in range(view.channels * scaled)),
        form,
        8 if mode == JPEG_ACT else 0,
        0,
        bits,
        step,
        rng.randbytes(24) if mode == JPEG_ACT else b"",
        tuple(rng.randint(-32768, 32767) for _ in range(view.channels * (mode == BLPA))),
    )
