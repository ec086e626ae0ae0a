"""Bytes that a decoder ignores or treats as absent: pairs of different streams with the same values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from random import Random

from cdu_verif.stimulus.streams.plain import (
    ACTNN,
    AFFINE,
    AUTOQUANTZ,
    BITS,
    BRC,
    BYPASS,
    DIVISION,
    FORMATS,
    JPEG_ACT,
    MASKED,
    MX,
    MX_BITS,
    SFPR,
    SFPR_ZVC,
    Matrix,
    PlainStream,
    example,
    masked,
)


@dataclass(frozen=True)
class Ignored:
    """Bytes that a section of the page lets a decoder ignore, and pairs of streams by their difference."""

    name: str
    section: int
    pairs: Mapping[str, tuple[bytes, bytes]]


def ignored() -> Iterator[Ignored]:
    """Yield all kinds of such bytes, in the order of the page."""
    # The padding of mode jpeg-act is no part of the payload: its inverse transform makes it.
    padded = [example(mode, form=form) for mode in (SFPR, SFPR_ZVC, BRC, BYPASS) for form in FORMATS]
    padded += [example(mode, bits=bits) for mode in AFFINE for bits in BITS]
    padded += [example(DIVISION, bits=bits, step=0x80) for bits in BITS]
    padded += [example(MX, bits=number) for number in range(len(MX_BITS))]
    pairs = {f"mode {one.mode}, format {one.form}, {one.bits} bits, step {one.step}": _bytes(*_padding(one)) for one in padded}
    yield Ignored("padding", 2, pairs)

    pairs = {}
    rng = Random(3)
    values = [rng.choice((0, 0, 1, 255)) for _ in range(64)]
    zeros = [place for place in range(64) if not values[place]]
    for mode, shape in ((SFPR_ZVC, (1, 1, 64)), (JPEG_ACT, (1, 1, 8, 8))):
        stream = example(mode, shape)
        for label, keep in (("one", zeros[-1:]), ("half", zeros[::2]), ("all", zeros)):
            without, more = masked(values), masked(values, keep=keep)
            pairs[f"mode {mode}, {label}"] = _bytes(stream.but(payload=without), stream.but(payload=more))
    yield Ignored("zero value byte", 3, pairs)

    pairs, fills = {}, {}
    for bits in BITS:
        codes = [rng.choice((0, 0, rng.randrange(1, 2**bits))) for _ in range(64)]
        zeros = [place for place in range(64) if not codes[place]]
        stream = example(AUTOQUANTZ, (1, 1, 64), bits=bits)
        for label, keep in (("one", zeros[-1:]), ("half", zeros[::2]), ("all", zeros)):
            without, more = masked(codes, bits), masked(codes, bits, keep)
            pairs[f"{bits} bits, {label}"] = _bytes(stream.but(payload=without), stream.but(payload=more))
        if bits < 8:
            # One code in every row: the rest of its byte is filled.
            single = [2**bits - 1 if place % 8 == place // 8 else 0 for place in range(64)]
            block = masked(single, bits)
            filled = block[:8] + bytes(byte | (0xFF & -(1 << bits)) for byte in block[8:])
            fills[f"{bits} bits"] = _bytes(stream.but(payload=block), stream.but(payload=filled))
    yield Ignored("zero code", 3, pairs)
    yield Ignored("fill", 3, fills)


def _bytes(first: PlainStream, second: PlainStream) -> tuple[bytes, bytes]:
    return bytes(first), bytes(second)


def _padding(stream: PlainStream) -> tuple[PlainStream, PlainStream]:
    """Return two streams whose payloads differ in every place of the padding."""
    mode, shape, width = stream.mode, stream.shape, _width(stream)
    view, count = Matrix.of(mode, shape), prod(shape)
    columns = 8 * view.row_beats
    padding = []
    for place in range(8 * view.beats):
        row, column = divmod(place, columns)
        real = place < count if mode == ACTNN else row < view.rows and column < view.columns
        if not real:
            padding.append(place)
    assert padding, f"shape {shape} has no padding in mode {mode}"
    if mode in MASKED:
        rng = Random(5)
        codes = [rng.choice((0, rng.getrandbits(width))) for _ in range(8 * view.beats)]
        zeros = [0 if place in padding else code for place, code in enumerate(codes)]
        return stream.but(payload=_blocks(codes, width)), stream.but(payload=_blocks(zeros, width))
    bits = int.from_bytes(stream.payload, "little")
    for place in padding:
        bits ^= (2**width - 1) << _first_bit(stream, view, place)
    return stream, stream.but(payload=bits.to_bytes(len(stream.payload), "little"))


def _width(stream: PlainStream) -> int:
    """Return the bits of a value in the payload."""
    if stream.mode == MX:
        return MX_BITS[stream.bits]
    return stream.bits or {BRC: 1, BYPASS: 16 if stream.form else 32}.get(stream.mode, 8)


def _blocks(codes: list[int], width: int) -> bytes:
    return b"".join(masked(codes[first : first + 64], width) for first in range(0, len(codes), 64))


def _first_bit(stream: PlainStream, view: Matrix, place: int) -> int:
    """Return the bit of the payload at which the code of a place of the padded matrix begins."""
    width = _width(stream)
    if stream.mode == MX:
        return 8 * (place // 32 + 1) + width * place
    if stream.mode not in (DIVISION, ACTNN):
        return width * place
    row, column = divmod(place, 8 * view.row_beats)
    block = row // 8 * view.row_beats + column // 8
    headed = 4 if stream.mode == ACTNN or stream.step & 0x80 else 2
    bytes_before = headed * (block // 4 + 1 if stream.mode == ACTNN else block + 1) + block * 8 * stream.bits
    return 8 * bytes_before + width * (8 * (row % 8) + column % 8)
