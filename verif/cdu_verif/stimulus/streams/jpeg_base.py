"""Rules of docs/reference/bitstream.md, section 8: jpeg-base streams that keep them, and streams that break one alone."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cdu_verif.stimulus.streams.rule import BEYOND, LEAST, MOST, Refuses, Rule, float32, sealed

#: Codes of the standard tables (T.81, K.3 and K.5): DC categories 0, 1, 10 and 11, end of block, sixteen zeros, AC coefficients
#: of one bit behind 0, 14 and 15 zeros, and one of ten bits.
DC0, DC1, DC10, DC11 = "00", "010", "11111110", "111111110"
EOB, ZRL, AC01, AC14, AC15 = "1010", "11111111001", "00", "1111111111101011", "1111111111110101"
AC10 = "1111111110000011"
#: A block of zeros.
ZERO = DC0 + EOB


@dataclass(frozen=True)
class PlainJpegBase:
    """Fields of a stream; ``bytes(stream)`` packs them with the right checksum, whatever they are."""

    payload: bytes
    shape: tuple[int, ...] = (1, 1, 8, 8)
    form: int = 0
    const_bits: int = 12
    pass1_bits: int = 2
    tables: int = 0
    reserved: tuple[int, int, int] = (0, 0, 0)
    divisors: bytes = bytes(range(1, 65))
    huffman: bytes = b""
    reciprocals: tuple[float, ...] = (0.5,)
    magic: bytes = b"CDJ\x1a"
    version: int = 1
    payload_bytes: int | None = None
    behind: bytes = b""

    def __bytes__(self) -> bytes:
        size = len(self.payload) if self.payload_bytes is None else self.payload_bytes
        precision = (self.const_bits, self.pass1_bits, self.tables)
        header = struct.pack("<4s8BQ", self.magic, self.version, self.form, *precision, *self.reserved, size)
        sections = struct.pack("<4I", *self.shape) + self.divisors + self.huffman
        sections += struct.pack(f"<{len(self.reciprocals)}f", *self.reciprocals)
        return sealed(header + sections + self.payload + self.behind)

    def but(self, **fields: Any) -> PlainJpegBase:
        """Return the stream with other values of some fields."""
        return replace(self, **fields)


def segment(*words: str, fill: str = "1") -> bytes:
    """Return a segment of bits, padded to a whole byte, a zero byte after every FF."""
    bits = "".join(words)
    bits += fill * (-len(bits) % 8)
    return int(bits or "0", 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")


def table(counts: Mapping[int, int], symbols: Sequence[int]) -> bytes:
    """Return a Huffman table with ``counts`` codes by length."""
    return bytes(counts.get(length, 0) for length in range(1, 17)) + bytes(symbols)


#: Tables with a zero as their only code: for the DC category 0, and for the end of a block.
ONE_CODE = table({1: 1}, [0])
_STANDARD_DC = table(dict(enumerate((0, 1, 5, 1, 1, 1, 1, 1, 1), 1)), range(12))
_STANDARD_AC = table(
    dict(enumerate((0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125), 1)),
    bytes.fromhex("""
        01 02 03 00 04 11 05 12 21 31 41 06 13 51 61 07 22 71 14 32 81 91 a1 08 23 42 b1 c1 15 52 d1 f0 24 33 62 72 82 09 0a 16
        17 18 19 1a 25 26 27 28 29 2a 34 35 36 37 38 39 3a 43 44 45 46 47 48 49 4a 53 54 55 56 57 58 59 5a 63 64 65 66 67 68 69
        6a 73 74 75 76 77 78 79 7a 83 84 85 86 87 88 89 8a 92 93 94 95 96 97 98 99 9a a2 a3 a4 a5 a6 a7 a8 a9 aa b2 b3 b4 b5 b6
        b7 b8 b9 ba c2 c3 c4 c5 c6 c7 c8 c9 ca d2 d3 d4 d5 d6 d7 d8 d9 da e1 e2 e3 e4 e5 e6 e7 e8 e9 ea f1 f2 f3 f4 f5 f6 f7 f8
        f9 fa"""),
)


def example(shape: tuple[int, ...] = (1, 1, 8, 8)) -> PlainJpegBase:
    """Return a stream of zeros."""
    n, c, h, w = shape
    blocks = -(-n * c * h // 8) * -(-w // 8)
    return PlainJpegBase(segment(ZERO * blocks), shape, reciprocals=tuple(0.5 + channel for channel in range(c)))


def own(dc: bytes = ONE_CODE, ac: bytes = ONE_CODE, payload: bytes = segment("00")) -> PlainJpegBase:
    """Return a stream of one block with its own tables."""
    return PlainJpegBase(payload, tables=1, huffman=dc + ac)


def rules() -> Iterator[Rule]:
    """Yield all rules, in the order of the page."""
    yield from _whole()
    yield from _header()
    yield from _shape_and_divisors()
    yield from _reciprocals()
    yield from _lengths()
    yield from _tables()
    yield from _segments()


def _rule(name: str, good: Mapping[str, Any], bad: Mapping[str, Any], by: Refuses = Refuses.READER) -> Rule:
    packed = ({label: bytes(stream) for label, stream in streams.items()} for streams in (good, bad))
    return Rule(f"jpeg-base, {name}", 8, by, *packed)


def _whole() -> Iterator[Rule]:
    base = example()
    good = {"zeros": base, "own tables": own(), "two channels": example((2, 2, 9, 17))}
    body = {name: bytes(stream)[:-4] for name, stream in good.items()}
    bad: dict[str, Any] = {f"{name} cut to {n}": sealed(b[:n]) for name, b in body.items() for n in range(4, len(b))}
    bad |= {f"{name}, a byte behind the payload": stream.but(behind=b"\0") for name, stream in good.items()}
    bad |= {f"{name}, a byte behind the checksum": bytes(stream) + b"\0" for name, stream in good.items()}
    yield _rule("sections", good, bad)
    bad = {f"{name}, bit {n}": b + struct.pack("<I", zlib.crc32(b) ^ 1 << n) for name, b in body.items() for n in range(32)}
    yield _rule("checksum", good, bad)


def _header() -> Iterator[Rule]:
    base = example()
    bad = {f"magic {magic!r}": base.but(magic=magic) for magic in (b"CDJ\n", b"cdj\x1a", b"\0DJ\x1a", bytes(4))}
    yield _rule("magic", {"zeros": base}, bad)
    for name, right, beyond in (
        ("version", (1,), (0, 2, 255)),
        ("form", (0, 1, 2), (3, 4, 255)),
        ("const_bits", range(8, 14), (0, 7, 14, 255)),
        ("pass1_bits", range(5), (5, 128, 255)),
        ("tables", (0,), (2, 128, 255)),
    ):
        good, bad = ({f"{name} {value}": base.but(**{name: value}) for value in values} for values in (right, beyond))
        yield _rule(name, good, bad)
    units = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 128), (255, 255, 255))
    bad = {f"reserved {unit}": base.but(reserved=unit) for unit in units}
    yield _rule("reserved", {"zeros": base}, bad)


def _shape_and_divisors() -> Iterator[Rule]:
    base = example()
    shapes = ((1, 1, 1, 1), (2, 3, 1, 1), (1, 1, 8, 8), (1, 8, 1, 7), (2, 3, 5, 7), (1, 2, 9, 65))
    right: dict[str, Any] = {f"shape {shape}": example(shape) for shape in shapes}
    bad: dict[str, Any] = {}
    for axis in range(4):
        empty = tuple(0 if place == axis else 8 for place in range(4))
        bad[f"axis {axis}"] = base.but(shape=empty)
        bad[f"axis {axis}, no payload"] = base.but(shape=empty, payload=b"")
    bad["a giant shape"] = base.but(shape=(2**32 - 1,) * 4)
    yield _rule("shape", right, bad)

    right, bad = {}, {}
    for place in (0, 1, 62, 63):
        for number, streams in ((0, bad), (1, right), (255, right)):
            divisors = bytes([*base.divisors[:place], number, *base.divisors[place + 1 :]])
            streams[f"divisor {place} is {number}"] = base.but(divisors=divisors)
    bad |= {f"{n} divisors": base.but(divisors=bytes([1] * n)) for n in (0, 63, 65, 128)}
    yield _rule("divisors", right, bad)


def _reciprocals() -> Iterator[Rule]:
    two = example((1, 2, 8, 8))
    right = {f"number {place} is {n}": two.but(reciprocals=_put(two, place, n)) for place in (0, 1) for n in (LEAST, MOST)}
    numbers = {**BEYOND, "above 2**120": float32(0x7B800001)}
    bad = {
        f"number {place} is {name}": two.but(reciprocals=_put(two, place, n)) for place in (0, 1) for name, n in numbers.items()
    }
    bad |= {f"{n} reciprocals": two.but(reciprocals=(1.0,) * n) for n in (0, 1, 3)}
    yield _rule("reciprocals", right, bad)


def _lengths() -> Iterator[Rule]:
    right: dict[str, Any] = {}
    bad: dict[str, Any] = {}
    for count in (1, 3, 4, 5, 16):
        shape = (count, 1, 8, 8)
        least, most = -(-2 * count // 8), 2 * -(-1665 * count // 8)
        stream = own(payload=segment("00" * count)).but(shape=shape)
        right[f"{count} blocks in {least} bytes"] = stream
        bad[f"{count} blocks in {least - 1} bytes"] = stream.but(payload=stream.payload[:-1])
        bad[f"{count} blocks in {most + 1} bytes"] = stream.but(payload=stream.payload + bytes(most + 1 - least))
        for told in (least - 1, least + 1, most, most + 1, 2**63, 2**64 - 1):
            bad[f"{count} blocks, said to be {told} bytes"] = stream.but(payload_bytes=told)
    yield _rule("payload bytes", right, bad)


def _put(stream: PlainJpegBase, place: int, number: float) -> tuple[float, ...]:
    return (*stream.reciprocals[:place], number, *stream.reciprocals[place + 1 :])


def _tables() -> Iterator[Rule]:
    # Codes of every length, as many as possible without a code of ones only.
    longest = table(dict.fromkeys(range(1, 16), 1) | {16: 1}, [0x00, *range(1, 11), *(0x11 + n for n in range(5))])
    right = {"one code each": own(), "codes of 1 to 16 bits": own(ac=longest)}
    every = {symbol: None for run in range(16) for symbol in range(run << 4 | 1, run << 4 | 11)} | {0: None, 0xF0: None}
    right["every DC category"] = own(dc=table({4: 12}, range(12)), payload=segment("0000", "0"))
    right["every AC symbol"] = own(ac=table({8: 162}, sorted(every)), payload=segment("0", "0" * 8))
    right["three codes"] = own(dc=table({2: 3}, [0, 1, 2]), payload=segment("00", "0"))
    bad: dict[str, Any] = {
        "a DC symbol of 12": own(dc=table({1: 1}, [12])),
        "a DC symbol of 255": own(dc=table({2: 2}, [0, 255])),
        **{
            f"an AC symbol of {symbol:#04x}": own(ac=table({2: 2}, [0, symbol])) for symbol in range(256) if symbol not in every
        },
        "a DC symbol twice": own(dc=table({2: 2}, [0, 0]), payload=segment("00", "0")),
        "an AC symbol twice": own(ac=table({2: 1, 3: 1}, [0, 0]), payload=segment("0", "00")),
    }
    yield _rule("symbols", right, bad)
    bad = {}
    for kind in ("dc", "ac"):
        for name, content in (
            ("no code", table({}, [])),
            ("one of ones", table({1: 2}, [0, 1])),
            ("sixteen ones", table(dict.fromkeys(range(1, 16), 1) | {16: 2}, [0x00, *range(1, 11), *range(0x11, 0x17)])),
            ("more than there are", table({1: 3}, [0, 1, 2])),
            ("more than the shorter ones leave", table({1: 1, 2: 2}, [0, 1, 2])),
            ("255 of one bit", table({1: 255}, [*range(255)])),
        ):
            if name == "sixteen ones" and kind == "dc":
                continue
            bad[f"{kind}: {name}"] = own(**{kind: content})
    yield _rule("codes", right, bad)
    standard = PlainJpegBase(segment(ZERO), tables=1, huffman=_STANDARD_DC + _STANDARD_AC)
    right = {
        "the standard table of DC only": own(dc=_STANDARD_DC, payload=segment("00", "0")),
        "the standard table of AC only": own(ac=_STANDARD_AC, payload=segment("0", EOB)),
    }
    yield _rule("standard tables", right, {"both": standard})


def _segments() -> Iterator[Rule]:
    base = example()

    def of(*words: str, shape: tuple[int, ...] = (1, 1, 8, 8), fill: str = "1") -> PlainJpegBase:
        return base.but(payload=segment(*words, fill=fill), shape=shape, reciprocals=(0.5,) * shape[1])

    two = (2, 1, 8, 8)
    marked = of(DC11, "11111111111", EOB).but(payload=segment(DC10, "1111111111", EOB))
    assert b"\xff\0" in marked.payload
    right = {
        "an FF with its zero": marked,
        "an FF that is filled": own(dc=table({1: 1, 2: 1}, [0, 1]), payload=segment("10", "1", "0")),
    }
    bad: dict[str, Any] = {
        f"FF and {byte:#04x}": marked.but(payload=marked.payload.replace(b"\xff\0", bytes([0xFF, byte])))
        for byte in (1, 0x7F, 0xD9, 0xFF)
    }
    bad["FF without its zero"] = marked.but(payload=marked.payload.replace(b"\xff\0", b"\xff"))
    bad["FF at the end"] = base.but(payload=segment(ZERO) + b"\xff")
    bad["FF 00 at the end"] = base.but(payload=segment(ZERO) + b"\xff\0")
    yield _rule("markers", right, bad, Refuses.HOST)

    bad = {
        "a DC pattern": of("111111111" + EOB * 4),
        "an AC pattern": of(DC0, "1" * 16, EOB),
        "no code of own tables": own(payload=segment("01", fill="0")),
    }
    yield _rule("patterns", {"zeros": base, "own tables": own()}, bad, Refuses.HOST)

    full = of(DC0, (AC01 + "1") * 63)
    right = {"zeros": base, "two blocks": of(ZERO, ZERO, shape=two), "a block without an end": full}
    bad = {
        "filled with zeros": of(ZERO, fill="0"),
        "filled with a zero and a one": of(ZERO, "01"),
        "a byte of ones behind": base.but(payload=segment(ZERO) + b"\xff\0"),
        "a byte of zeros behind": base.but(payload=segment(ZERO) + b"\0"),
        "a block behind": of(ZERO, ZERO),
        "an end of block behind a full block": of(DC0, (AC01 + "1") * 63, EOB),
        "a block is not there": of(ZERO, shape=two),
        "a block without an end": of(DC0, (AC01 + "1") * 3),
        "a DC coefficient without its bits": of(DC11, "111"),
    }
    yield _rule("end", right, bad, Refuses.HOST)

    right = {
        "to the last coefficient": of(DC0, ZRL * 3, AC14, "1"),
        "one by one": full,
    }
    bad = {
        "fifteen zeros too many": of(DC0, ZRL * 3, AC15, "1"),
        "sixteen zeros four times": of(DC0, ZRL * 4),
        "a run behind the last coefficients": of(DC0, (AC01 + "1") * 62, AC14, "1"),
    }
    yield _rule("runs", right, bad, Refuses.HOST)

    right = {f"{n} times": of(DC0, ZRL * n, AC01, "1", EOB) for n in (1, 2, 3)}
    bad = {f"{n} times, then the end of the block": of(DC0, ZRL * n, EOB) for n in (1, 2, 3)}
    bad["then the end of the first of two blocks"] = of(DC0, ZRL, EOB, ZERO, shape=two)
    bad["then the end of the second of two blocks"] = of(ZERO, DC0, AC01, "1", ZRL, EOB, shape=two)
    bad["where no coefficient has room"] = of(DC0, (AC01 + "1") * 47, ZRL)
    yield _rule("zeros", right, bad, Refuses.HOST)

    right = {
        "1023": of(DC10, "1111111111", EOB),
        "-1024": of(DC11, "01111111111", EOB),
        "from one end to the other": of(DC11, "01111111111", EOB, DC11, "11111111111", EOB, shape=two),
    }
    bad = {
        "1024": of(DC11, "10000000000", EOB),
        "-1025": of(DC11, "01111111110", EOB),
        "1024 by a difference": of(DC10, "1111111111", EOB, DC1, "1", EOB, shape=two),
        "-1025 by a difference": of(DC11, "01111111111", EOB, DC1, "0", EOB, shape=two),
    }
    yield _rule("DC coefficients", right, bad, Refuses.HOST)
