"""Rules of docs/reference/bitstream.md that a header, tables and numbers can break (section 1)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from cdu_verif.stimulus.streams.plain import (
    ACTNN,
    AFFINE,
    AUTOQUANT,
    AUTOQUANTZ,
    BITS,
    BLPA,
    DIVISION,
    FORMATS,
    JPEG_ACT,
    MODES,
    MX,
    SFPR,
    Matrix,
    example,
)
from cdu_verif.stimulus.streams.rule import BEYOND, LEAST, MOST, MOST_AFFINE, Refuses, Rule, every, float32, packed, sealed


def rules() -> Iterator[Rule]:
    """Yield the rules, in the order of the page."""
    yield from _sections()
    yield from _header()
    yield from _affine_header()
    yield from _numbers()


def _sections() -> Iterator[Rule]:
    streams = every()
    good = packed(streams)
    cut = {
        f"{name} cut to {end} bytes": sealed(stream[:end])
        for name, stream in good.items()
        if name in (f"mode {mode}" for mode in MODES)
        for end in range(len(stream) - 4)
    }
    longer = {f"{name}, a byte behind the checksum": stream + b"\0" for name, stream in good.items()}
    longer |= {f"{name}, a stream behind it": stream * 2 for name, stream in good.items()}
    longer |= {f"{name}, a byte behind the payload": bytes(stream.but(behind=b"\0")) for name, stream in streams.items()}
    yield Rule(
        "sections",
        1,
        Refuses.READER,
        good,
        {**cut, **longer, "nothing": b"", "a checksum of nothing": sealed(b"")},
    )
    bad: dict[str, bytes] = {}
    for name, stream in good.items():
        body, crc = stream[:-4], zlib.crc32(stream[:-4])
        bad |= {f"{name}, bit {bit}": body + struct.pack("<I", crc ^ 1 << bit) for bit in range(32)}
        bad[f"{name}, big endian"] = body + struct.pack(">I", crc)
        bad[f"{name}, without the final exclusive-or"] = body + struct.pack("<I", crc ^ 0xFFFFFFFF)
        bad[f"{name}, without the header"] = body + struct.pack("<I", zlib.crc32(body[20:]))
        bad[f"{name}, another payload"] = body[:-1] + bytes([body[-1] ^ 0x10]) + stream[-4:]
    yield Rule("checksum", 1, Refuses.READER, good, bad)


def _header() -> Iterator[Rule]:
    streams = every()
    good = packed(streams)
    magics = [b"\0DU\x1a", b"CdU\x1a", b"CD\x1a\x1a", b"CDU\n", b"cdu\x1a", bytes(4)]
    bad = {f"{name}, magic {magic!r}": bytes(stream.but(magic=magic)) for name, stream in streams.items() for magic in magics}
    yield Rule("magic", 1, Refuses.READER, good, bad)

    bad = {f"{name}, version {v}": bytes(stream.but(version=v)) for name, stream in streams.items() for v in (0, 2, 255)}
    yield Rule("version", 1, Refuses.READER, good, bad)

    bad = {f"mode {mode}": bytes(example(SFPR).but(mode=mode)) for mode in (0, 12, 15, 16, 17, 128 + SFPR, 255)}
    modes = {f"mode {mode}": bytes(example(mode)) for mode in MODES}
    yield Rule("mode", 1, Refuses.READER, modes, bad)

    formats = {}
    for mode in MODES:
        for form in FORMATS:
            stream = example(mode, form=form)
            formats[f"mode {mode}, format {form}"] = bytes(stream)
            # Values that float16 cannot represent, and some that are subnormal in it.
            for number in (2.0**12, 2.0**-24) if stream.reciprocals else ():
                scaled = stream.but(reciprocals=(number,) * len(stream.reciprocals))
                formats[f"mode {mode}, format {form}, reciprocals of {number}"] = bytes(scaled)
    bad = {f"mode {mode}, format {f}": bytes(example(mode).but(form=f)) for mode in MODES for f in (3, 4, 128, 255)}
    yield Rule("number format", 1, Refuses.READER, formats, bad)

    free = [mode for mode in MODES if mode not in (JPEG_ACT, DIVISION)]
    ranks = {
        f"mode {mode}, rank {rank}": bytes(example(mode, (1,) * (rank - 1) + (19,))) for mode in free for rank in range(1, 9)
    }
    bad = {f"mode {mode}, rank 0": bytes(example(mode, (1,)).but(shape=())) for mode in free}
    bad |= {f"mode {mode}, rank 9": bytes(example(mode, (1,) * 8 + (19,))) for mode in free}
    bad |= {f"mode {mode}, rank {rank}": bytes(example(mode).but(rank=rank)) for mode in MODES for rank in (0, 9, 128, 255)}
    yield Rule("rank", 1, Refuses.READER, ranks, bad)

    ranks, bad = {}, {}
    for mode in (JPEG_ACT, DIVISION):
        stream = example(mode)
        ranks[f"mode {mode}"] = bytes(stream)
        for shape in (stream.shape[1:], (1, *stream.shape), (9, 13), (117,), (1,) * 4 + stream.shape):
            bad[f"mode {mode}, shape {shape}"] = bytes(stream.but(shape=shape))
    yield Rule("four axes", 1, Refuses.READER, ranks, bad)

    jpeg = example(JPEG_ACT)
    others = {name: stream for name, stream in streams.items() if stream.mode != JPEG_ACT}
    for field, allowed, beyond in (
        ("const_bits", range(8, 14), (0, 1, 7, 14, 128, 255)),
        ("pass1_bits", range(5), (5, 16, 128, 255)),
    ):
        right = {f"{field} {value}": bytes(jpeg.but(**{field: value})) for value in allowed}
        bad = {f"{field} {value}": bytes(jpeg.but(**{field: value})) for value in beyond}
        bad |= {f"{label}, {field} {v}": bytes(s.but(**{field: v})) for label, s in others.items() for v in (1, 2, 12, 255)}
        yield Rule(field, 1, Refuses.READER, right | packed(others), bad)


def _affine_header() -> Iterator[Rule]:
    streams = every()
    good = packed(streams)
    bad = {}
    for mode in MODES:
        stream = example(mode)
        wrong = (0, 3, 5, 6, 7, 9, 10, 12, 16, 32, 128, 255)
        for bits in wrong if mode in AFFINE else (6, 7, 8, 16, 128, 255) if mode == MX else BITS:
            bad[f"mode {mode}, bits {bits}"] = bytes(stream.but(bits=bits))
            codes = bytes(Matrix.of(mode, stream.shape).beats * bits)
            bad[f"mode {mode}, bits {bits} and as many codes"] = bytes(stream.but(bits=bits, payload=codes))
    yield Rule("bits", 1, Refuses.READER, good, bad)

    bad = {
        f"{name}, bit {bit}": bytes(stream.but(step=stream.step | 1 << bit))
        for name, stream in streams.items()
        for bit in (4, 5, 6)
    }
    yield Rule("reserved bits", 1, Refuses.READER, good, bad)

    bad = {}
    for name, stream in streams.items():
        if stream.mode != DIVISION:
            bad[name] = bytes(stream.but(step=stream.step | 0x80))
    yield Rule("block_range", 1, Refuses.READER, good, bad)

    none = {name: s for name, s in streams.items() if s.mode not in AFFINE or s.mode == ACTNN or s.step == 0x80}
    bad = {f"{name}, step_log2 {n}": bytes(s.but(step=s.step | n)) for name, s in none.items() for n in (1, 2, 8, 15)}
    yield Rule("no step", 1, Refuses.READER, packed(none), bad)

    right: dict[str, bytes] = {}
    bad = {}
    for bits in BITS:
        for mode in (DIVISION, BLPA, AUTOQUANT, AUTOQUANTZ):
            least = 1 if mode == DIVISION else 0
            for n in range(16):
                chosen = right if least <= n <= 16 - bits else bad
                chosen[f"mode {mode}, {bits} bits, step_log2 {n}"] = bytes(example(mode, bits=bits, step=n))
    yield Rule("step_log2", 1, Refuses.READER, right, bad)


def _numbers() -> Iterator[Rule]:
    streams = every()
    bad = {}
    for name, stream in streams.items():
        for axis in range(len(stream.shape)):
            shape = (*stream.shape[:axis], 0, *stream.shape[axis + 1 :])
            bad[f"{name}, axis {axis}"] = bytes(stream.but(shape=shape))
            bad[f"{name}, axis {axis}, and no payload"] = bytes(stream.but(shape=shape, payload=b""))
    yield Rule(
        "extents",
        1,
        Refuses.READER,
        packed(streams),
        bad,
    )

    tables = {"zeros": bytes(24), "ones": b"\xff" * 24, "counting": bytes(range(24))}
    right = {f"a table of {name}": bytes(example(JPEG_ACT).but(table=table)) for name, table in tables.items()}
    bad = {f"a table of {n} bytes": bytes(example(JPEG_ACT).but(table=bytes(n))) for n in (0, 1, 23, 25, 48)}
    bad |= {f"a table in {name}": bytes(s.but(table=bytes(24))) for name, s in streams.items() if s.mode != JPEG_ACT}
    yield Rule("shift table", 1, Refuses.READER, right, bad)

    right, bad = {}, {}
    for name, stream in streams.items():
        count = len(stream.reciprocals)
        if not count:
            bad[f"a reciprocal in {name}"] = bytes(stream.but(reciprocals=(1.0,)))
            continue
        bad[f"{name}, one less"] = bytes(stream.but(reciprocals=stream.reciprocals[1:]))
        bad[f"{name}, one more"] = bytes(stream.but(reciprocals=(*stream.reciprocals, 1.0)))
        most = MOST_AFFINE if stream.mode in AFFINE else MOST
        above = float32(0x77000001 if stream.mode in AFFINE else 0x7B800001)
        for place in range(count):
            for number in (LEAST, most):
                numbers = (*stream.reciprocals[:place], number, *stream.reciprocals[place + 1 :])
                right[f"{name}, number {place} is {number}"] = bytes(stream.but(reciprocals=numbers))
            for label, number in {**BEYOND, "above the most": above}.items():
                numbers = (*stream.reciprocals[:place], number, *stream.reciprocals[place + 1 :])
                bad[f"{name}, number {place} is {label}"] = bytes(stream.but(reciprocals=numbers))
    yield Rule(
        "reciprocals",
        1,
        Refuses.READER,
        right,
        bad,
    )

    blpa = example(BLPA)
    right = {f"offsets of {n}": bytes(blpa.but(offsets=(n,) * len(blpa.offsets))) for n in (-32768, -1, 0, 1, 32767)}
    bad = {f"{n} offsets": bytes(blpa.but(offsets=(0,) * n)) for n in (0, len(blpa.offsets) - 1, len(blpa.offsets) + 1)}
    bad |= {f"an offset in {name}": bytes(s.but(offsets=(0,))) for name, s in streams.items() if s.mode != BLPA}
    yield Rule("offsets", 1, Refuses.READER, right, bad)
