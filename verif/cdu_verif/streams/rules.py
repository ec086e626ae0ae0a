"""The rules of docs/bitstream.md, sections 1 to 7, each with streams that keep it and streams that break it alone."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from cdu_verif.streams.plain import (
    ACTNN,
    AFFINE,
    AUTOQUANT,
    AUTOQUANTZ,
    BITS,
    BLPA,
    BYPASS,
    DIVISION,
    FORMATS,
    JPEG_ACT,
    MASKED,
    MODES,
    RANGED,
    SFPR,
    Matrix,
    PlainStream,
    example,
    head,
    heads,
    masked,
    with_head,
)


class Refuses(Enum):
    """Who refuses a stream where a unit decodes (section 7)."""

    READER = "whoever takes the stream apart, before a job is given to a unit"
    HOST = "the host, from the payload, before it gives the job to a unit"
    UNIT = "the unit, which raises a bit of ERRORS"


@dataclass(frozen=True)
class Rule:
    """One rule: a sentence of the page, who refuses what breaks it, and streams by what is special about them."""

    name: str
    section: int
    sentence: str
    by: Refuses
    good: Mapping[str, bytes]
    bad: Mapping[str, bytes]


def sealed(body: bytes) -> bytes:
    """A body with its checksum."""
    return body + struct.pack("<I", zlib.crc32(body))


def float32(pattern: int) -> float:
    """The number of a bit pattern."""
    (number,) = struct.unpack("<f", struct.pack("<I", pattern))
    return float(number)


#: The ends of the range of reciprocals, and the numbers next to them, outside.
LEAST, MOST, MOST_AFFINE = 2.0**-120, 2.0**120, 2.0**111
BEYOND = {
    "below 2**-120": float32(0x037FFFFF),
    "0": 0.0,
    "-0": -0.0,
    "negative": -1.0,
    "subnormal": 2.0**-149,
    "infinite": float("inf"),
    "minus infinite": float("-inf"),
    "NaN": float("nan"),
}


def _every() -> dict[str, PlainStream]:
    """A right stream of every mode, and of what an affine mode can be."""
    found = {f"mode {mode}": example(mode) for mode in MODES}
    for bits in BITS:
        found |= {f"mode {mode}, {bits} bits": example(mode, bits=bits) for mode in AFFINE}
        found[f"division by block, {bits} bits"] = example(DIVISION, bits=bits, step=0x80)
    return found


def _packed(streams: Mapping[str, PlainStream]) -> dict[str, bytes]:
    return {name: bytes(stream) for name, stream in streams.items()}


def rules() -> Iterator[Rule]:
    """All rules, in the order of the page."""
    yield from _sections()
    yield from _header()
    yield from _affine_header()
    yield from _numbers()
    yield from _lengths()
    yield from _masks()
    yield from _heads()


def _sections() -> Iterator[Rule]:
    every = _every()
    good = _packed(every)
    cut = {
        f"{name} cut to {end} bytes": sealed(stream[:end])
        for name, stream in good.items()
        if name in (f"mode {mode}" for mode in MODES)
        for end in range(len(stream) - 4)
    }
    longer = {f"{name}, a byte behind the checksum": stream + b"\0" for name, stream in good.items()}
    longer |= {f"{name}, a stream behind it": stream * 2 for name, stream in good.items()}
    longer |= {f"{name}, a byte behind the payload": bytes(stream.but(behind=b"\0")) for name, stream in every.items()}
    yield Rule(
        "sections",
        1,
        "The sections follow one another without gaps. Nothing follows the CRC.",
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
    yield Rule("checksum", 1, "Of all bytes before it, header included", Refuses.READER, good, bad)


def _header() -> Iterator[Rule]:
    every = _every()
    good = _packed(every)
    magics = [b"\0DU\x1a", b"CdU\x1a", b"CD\x1a\x1a", b"CDU\n", b"cdu\x1a", bytes(4)]
    bad = {f"{name}, magic {magic!r}": bytes(stream.but(magic=magic)) for name, stream in every.items() for magic in magics}
    yield Rule("magic", 1, '`43 44 55 1A` ("CDU", then 1A hexadecimal)', Refuses.READER, good, bad)

    bad = {f"{name}, version {v}": bytes(stream.but(version=v)) for name, stream in every.items() for v in (0, 2, 255)}
    yield Rule("version", 1, "| 4 | 1 | version | 1 |", Refuses.READER, good, bad)

    bad = {f"mode {mode}": bytes(example(SFPR).but(mode=mode)) for mode in (0, 11, 15, 16, 17, 128 + SFPR, 255)}
    modes = {f"mode {mode}": bytes(example(mode)) for mode in MODES}
    yield Rule("mode", 1, "1 sfpr, 2 sfpr+zvc, 3 jpeg-act, 4 brc, 5 bypass, 6 division", Refuses.READER, modes, bad)

    formats = {}
    for mode in MODES:
        for form in FORMATS:
            stream = example(mode, form=form)
            formats[f"mode {mode}, format {form}"] = bytes(stream)
            # Values that float16 has no numbers for, and some that are subnormal in it.
            for number in (2.0**12, 2.0**-24) if stream.reciprocals else ():
                scaled = stream.but(reciprocals=(number,) * len(stream.reciprocals))
                formats[f"mode {mode}, format {form}, reciprocals of {number}"] = bytes(scaled)
    bad = {f"mode {mode}, format {f}": bytes(example(mode).but(form=f)) for mode in MODES for f in (3, 4, 128, 255)}
    yield Rule("number format", 1, "0 float32, 1 bfloat16, 2 float16", Refuses.READER, formats, bad)

    free = [mode for mode in MODES if mode not in (JPEG_ACT, DIVISION)]
    ranks = {
        f"mode {mode}, rank {rank}": bytes(example(mode, (1,) * (rank - 1) + (19,))) for mode in free for rank in range(1, 9)
    }
    bad = {f"mode {mode}, rank 0": bytes(example(mode, (1,)).but(shape=())) for mode in free}
    bad |= {f"mode {mode}, rank 9": bytes(example(mode, (1,) * 8 + (19,))) for mode in free}
    bad |= {f"mode {mode}, rank {rank}": bytes(example(mode).but(rank=rank)) for mode in MODES for rank in (0, 9, 128, 255)}
    yield Rule("rank", 1, "| 7 | 1 | rank | 1 to 8; 4 in jpeg-act and division |", Refuses.READER, ranks, bad)

    ranks, bad = {}, {}
    for mode in (JPEG_ACT, DIVISION):
        stream = example(mode)
        ranks[f"mode {mode}"] = bytes(stream)
        for shape in (stream.shape[1:], (1, *stream.shape), (9, 13), (117,), (1,) * 4 + stream.shape):
            bad[f"mode {mode}, shape {shape}"] = bytes(stream.but(shape=shape))
    yield Rule("four axes", 1, "| 7 | 1 | rank | 1 to 8; 4 in jpeg-act and division |", Refuses.READER, ranks, bad)

    jpeg = example(JPEG_ACT)
    others = {name: stream for name, stream in every.items() if stream.mode != JPEG_ACT}
    for name, field, allowed, beyond in (
        ("const_bits", "const_bits", range(8, 14), (0, 1, 7, 14, 128, 255)),
        ("pass1_bits", "pass1_bits", range(5), (5, 16, 128, 255)),
    ):
        right = {f"{field} {value}": bytes(jpeg.but(**{field: value})) for value in allowed}
        bad = {f"{field} {value}": bytes(jpeg.but(**{field: value})) for value in beyond}
        bad |= {f"{label}, {field} {v}": bytes(s.but(**{field: v})) for label, s in others.items() for v in (1, 2, 12, 255)}
        row = {
            "const_bits": "8 to 13 in jpeg-act, else 0",
            "pass1_bits": "0 to 4 in jpeg-act, else 0",
        }[name]
        yield Rule(name, 1, row, Refuses.READER, right | _packed(others), bad)


def _affine_header() -> Iterator[Rule]:
    every = _every()
    good = _packed(every)
    bad = {}
    for mode in MODES:
        stream = example(mode)
        for bits in (0, 3, 5, 6, 7, 9, 10, 12, 16, 32, 128, 255) if mode in AFFINE else BITS:
            bad[f"mode {mode}, bits {bits}"] = bytes(stream.but(bits=bits))
            codes = bytes(Matrix.of(mode, stream.shape).beats * bits)
            bad[f"mode {mode}, bits {bits} and as many codes"] = bytes(stream.but(bits=bits, payload=codes))
    yield Rule("bits", 1, "1, 2, 4 or 8 in the affine modes (6 to 10), else 0", Refuses.READER, good, bad)

    bad = {
        f"{name}, bit {bit}": bytes(stream.but(step=stream.step | 1 << bit))
        for name, stream in every.items()
        for bit in (4, 5, 6)
    }
    yield Rule("reserved bits", 1, "bits 3..0: `step_log2`; bit 7: `block_range`; bits 6..4: 0", Refuses.READER, good, bad)

    bad = {}
    for name, stream in every.items():
        if stream.mode != DIVISION:
            bad[name] = bytes(stream.but(step=stream.step | 0x80))
    yield Rule("block_range", 1, "`block_range` may be 1 in division only.", Refuses.READER, good, bad)

    none = {name: s for name, s in every.items() if s.mode not in AFFINE or s.mode == ACTNN or s.step == 0x80}
    bad = {f"{name}, step_log2 {n}": bytes(s.but(step=s.step | n)) for name, s in none.items() for n in (1, 2, 8, 15)}
    yield Rule(
        "no step", 1, "`step_log2` is 0 in actnn and in division with `block_range` 1", Refuses.READER, _packed(none), bad
    )

    right: dict[str, bytes] = {}
    bad = {}
    for bits in BITS:
        for mode in (DIVISION, BLPA, AUTOQUANT, AUTOQUANTZ):
            least = 1 if mode == DIVISION else 0
            for n in range(16):
                chosen = right if least <= n <= 16 - bits else bad
                chosen[f"mode {mode}, {bits} bits, step_log2 {n}"] = bytes(example(mode, bits=bits, step=n))
    yield Rule("step_log2", 1, "0 to 16 - `bits` in blpa, autoquant and autoquantz", Refuses.READER, right, bad)


def _numbers() -> Iterator[Rule]:
    every = _every()
    bad = {}
    for name, stream in every.items():
        for axis in range(len(stream.shape)):
            shape = (*stream.shape[:axis], 0, *stream.shape[axis + 1 :])
            bad[f"{name}, axis {axis}"] = bytes(stream.but(shape=shape))
            bad[f"{name}, axis {axis}, and no payload"] = bytes(stream.but(shape=shape, payload=b""))
    yield Rule(
        "extents",
        1,
        "One unsigned 32-bit extent per axis, first axis first, each at least 1.",
        Refuses.READER,
        _packed(every),
        bad,
    )

    tables = {"zeros": bytes(24), "ones": b"\xff" * 24, "counting": bytes(range(24))}
    right = {f"a table of {name}": bytes(example(JPEG_ACT).but(table=table)) for name, table in tables.items()}
    bad = {f"a table of {n} bytes": bytes(example(JPEG_ACT).but(table=bytes(n))) for n in (0, 1, 23, 25, 48)}
    bad |= {f"a table in {name}": bytes(s.but(table=bytes(24))) for name, s in every.items() if s.mode != JPEG_ACT}
    yield Rule(
        "shift table", 1, "64 entries of 3 bits in 24 bytes read as one little-endian number", Refuses.READER, right, bad
    )

    right, bad = {}, {}
    for name, stream in every.items():
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
        "One float32 `r` per channel, first channel first, in `2**-120` to `2**120`, in the affine modes to `2**111`.",
        Refuses.READER,
        right,
        bad,
    )

    blpa = example(BLPA)
    right = {f"offsets of {n}": bytes(blpa.but(offsets=(n,) * len(blpa.offsets))) for n in (-32768, -1, 0, 1, 32767)}
    bad = {f"{n} offsets": bytes(blpa.but(offsets=(0,) * n)) for n in (0, len(blpa.offsets) - 1, len(blpa.offsets) + 1)}
    bad |= {f"an offset in {name}": bytes(s.but(offsets=(0,))) for name, s in every.items() if s.mode != BLPA}
    yield Rule("offsets", 1, "One signed 16-bit integer per channel, first channel first.", Refuses.READER, right, bad)


#: Shapes of every kind: with and without channels, one value, a row, maps of fewer than 8 values, odd ones, whole ones.
_SHAPES = (
    (1,),
    (8,),
    (65,),
    (3, 5),
    (2, 3, 7),
    (2, 3, 8),
    (1, 1, 1, 1),
    (1, 1, 8, 8),
    (2, 3, 3, 3),
    (2, 1, 5, 41),
    (2, 2, 2, 2, 2),
)


def _lengths() -> Iterator[Rule]:
    right: dict[str, bytes] = {}
    bad: dict[str, bytes] = {}
    for name, stream in _every().items():
        for shape in _SHAPES:
            if stream.mode in (JPEG_ACT, DIVISION) and len(shape) != 4:
                continue
            for form in FORMATS if stream.mode == BYPASS else (0,):
                of_shape = example(stream.mode, shape, form=form, bits=stream.bits, step=stream.step)
                label = f"{name}, {shape}, format {form}"
                ends = {"": of_shape.payload, " at most": of_shape.payload}
                if stream.mode in MASKED:
                    blocks, width = Matrix.of(stream.mode, shape).beats // 8, stream.bits or 8
                    ends = {" at least": bytes(8) * blocks, " at most": masked([1] * 64, width) * blocks}
                right |= {label + end: bytes(of_shape.but(payload=payload)) for end, payload in ends.items()}
                first, last = next(iter(ends.values())), ends[" at most"]
                for less in (1, 8, len(first)):
                    bad[f"{label}, {less} bytes less"] = bytes(of_shape.but(payload=first[: max(len(first) - less, 0)]))
                for more in (1, 8, len(last)):
                    bad[f"{label}, {more} bytes more"] = bytes(of_shape.but(payload=last + bytes(more)))
                for told in (len(first) - 1, len(last) + 1, 0, 2**32, 2**63, 2**64 - 1):
                    bad[f"{label}, said to be {told} bytes"] = bytes(of_shape.but(payload_bytes=told))
        giant = (2**32 - 1,) * len(stream.shape)
        bad[f"{name}, a giant shape"] = bytes(stream.but(shape=giant))
    yield Rule(
        "payload bytes",
        2,
        "the payload length lies outside the bounds of section 2, or the stream's length is not the sum of its sections",
        Refuses.READER,
        right,
        bad,
    )


def _masks() -> Iterator[Rule]:
    right: dict[str, bytes] = {}
    bad: dict[str, bytes] = {}
    for mode in MASKED:
        shape = (1, 1, 16, 16) if mode == JPEG_ACT else (1, 1, 256)
        for bits in BITS if mode == AUTOQUANTZ else (8,):
            stream = example(mode, shape, bits=bits)
            # In each block row 0 is whole, row 2 has one code, row 5 two, row 7 one; the others are empty.
            block = masked([int(place in (*range(8), 16, 40, 47, 63)) for place in range(64)], bits)
            blocks = [block] * 4
            moved = [block, block[:2] + b"\x80" + block[3:], *blocks[2:]]
            label = f"mode {mode}, {bits} bits"
            right[label] = bytes(stream.but(payload=b"".join(blocks)))
            right[f"{label}, a code at another place of its row"] = bytes(stream.but(payload=b"".join(moved)))
            whole = b"".join(blocks)
            broken = {
                "a byte behind the last block": whole + b"\x01",
                "the last byte is not there": whole[:-1],
                "an empty block behind the last": whole + bytes(8),
                "a block behind the last": whole + block,
                "the last block is not there": whole[: -len(block)],
                "the last mask is cut": whole[: -len(block) + 4],
            }
            for place in range(4):
                begin = place * len(block)
                for row, lies in ((1, (0x01, 0x80, 0xFF)), (2, (0x00, 0xFF)), (0, (0x00,)), (7, (0x00,))):
                    for lie in lies:
                        content = whole[: begin + row] + bytes([lie]) + whole[begin + row + 1 :]
                        # Behind a lie other bytes are masks; now and then they make up for it.
                        if not _chain_ends(content, 4, bits):
                            broken[f"mask byte {row} of block {place} is {lie}"] = content
            bad |= {f"{label}, {what}": bytes(stream.but(payload=content)) for what, content in broken.items()}
    yield Rule(
        "masks",
        3,
        "the blocks with masks, as many as section 2 says, do not end exactly where the payload ends",
        Refuses.UNIT,
        right,
        bad,
    )


def _chain_ends(payload: bytes, count: int, bits: int) -> bool:
    """Whether so many blocks end where the payload ends."""
    place = 0
    for _ in range(count):
        mask = payload[place : place + 8]
        if len(mask) < 8:
            return False
        place += 8 + sum(-(-byte.bit_count() * bits // 8) for byte in mask)
    return place == len(payload)


def _heads() -> Iterator[Rule]:
    right: dict[str, bytes] = {}
    bad: dict[str, bytes] = {}
    for mode, flag in RANGED:
        for bits in BITS:
            shape = (2, 2, 5, 19) if mode == DIVISION else (700,)
            stream = example(mode, shape, bits=bits, step=flag)
            greatest = 2**bits - 1
            # The least steps with which a range of 65535 and one of 65536 can begin at a 16-bit number.
            mantissa, exponent = next((m, e) for e in range(10) for m in range(128, 256) if greatest * m << e >= 32769)
            spread = greatest * mantissa << exponent
            kept = {
                "m 1, e 0": head(0, 1, 0),
                "m 255, e 0": head(-32768, 255, 0),
                "e 9": head(-32768, max(191 // greatest, 1), 9) if greatest < 192 else head(-32768, 1, 8),
                "to 65535": head(65535 - spread, mantissa, exponent),
                "a step from the least number on": head(-32768, 1, 0),
            }
            lost = {
                "m 0": head(0, 0, 0),
                "m 0, e 9": head(0, 0, 9),
                "e 10": head(-32768, 1, 10),
                "e 16": head(-32768, 1, 16),
                "e 255": head(-32768, 1, 255),
                "to 65536": head(65536 - spread, mantissa, exponent),
                "as far as can be": head(32767, 255, 9),
                "all ones": head(-1, 255, 255),
            }
            for place in sorted({0, 1, heads(stream) - 1}):
                where = f"mode {mode}, {bits} bits, head {place}: "
                right |= {where + name: bytes(with_head(stream, place, content)) for name, content in kept.items()}
                bad |= {where + name: bytes(with_head(stream, place, content)) for name, content in lost.items()}
    yield Rule("heads", 3, "m is 0, e is above 9, or `Z + B * m * 2**e` is above 65535", Refuses.HOST, right, bad)
