"""Rules of docs/reference/bitstream.md that a payload can break (sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterator

from cdu_verif.stimulus.streams.plain import (
    AUTOQUANTZ,
    BITS,
    BYPASS,
    DIVISION,
    FORMATS,
    JPEG_ACT,
    MASKED,
    RANGED,
    Matrix,
    example,
    head,
    heads,
    masked,
    with_head,
)
from cdu_verif.stimulus.streams.rule import Refuses, Rule, every


def rules() -> Iterator[Rule]:
    """Yield the rules, in the order of the page."""
    yield from _lengths()
    yield from _masks()
    yield from _heads()


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
    for name, stream in every().items():
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
                        # Behind a wrong mask other bytes are taken for masks; sometimes they compensate for it.
                        if not _chain_ends(content, 4, bits):
                            broken[f"mask byte {row} of block {place} is {lie}"] = content
            bad |= {f"{label}, {what}": bytes(stream.but(payload=content)) for what, content in broken.items()}
    yield Rule(
        "masks",
        3,
        Refuses.UNIT,
        right,
        bad,
    )


def _chain_ends(payload: bytes, count: int, bits: int) -> bool:
    """Return whether ``count`` blocks end where the payload ends."""
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
    yield Rule("heads", 3, Refuses.HOST, right, bad)
