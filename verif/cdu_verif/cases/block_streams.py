"""Payloads of the streams between the parts of an array, from golden bytes and values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from actcodec.golden import brc, zvc
from cdu.manifest import pack
from cdu_spec.bitstream import MASK_BYTES, Mode
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES
from torch import Tensor

from cdu_verif.cases.case import Ports, integers, mixed_blocks, words

#: Modes whose payload a block encoder makes of its input directly.
DIRECT_MODES = (Mode.SFPR, Mode.SFPR_ZVC, Mode.BRC)


@dataclass(frozen=True)
class Tag:
    """Fields of :class:`cdu.words.BlockTag`."""

    mode: Mode
    bank: int
    last: int

    @property
    def fields(self) -> dict[str, int]:
        """The fields by name."""
        return {"mode": int(self.mode), "bank": self.bank, "last": self.last}


@dataclass(frozen=True)
class Block:
    """One block of a job: rows (1..8, 8) of int8, and its golden bytes."""

    tag: Tag
    rows: Tensor
    packed: bytes


def packed_block(rows: Tensor, mode: Mode) -> bytes:
    """The golden bytes of one block."""
    if mode is Mode.BRC:
        return bytes(brc.encode(rows.reshape(-1).float()).tolist())
    if mode.has_zvc:
        return bytes(zvc.encode(rows.reshape(1, BLOCK_VALUES)).tolist())
    return bytes(rows.reshape(-1).view(torch.uint8).tolist())


def job(rows: Tensor, mode: Mode, bank: int = 0) -> list[Block]:
    """The blocks of a job of rows (n, 8): quantised values, in modes with ZVC whole blocks."""
    rows = rows.reshape(-1, LANES).to(torch.int8).contiguous()
    ends = range(0, len(rows), BLOCK_SIDE)
    return [
        Block(Tag(mode, bank, int(start == ends[-1])), part, packed_block(part, mode))
        for start, part in ((start, rows[start : start + BLOCK_SIDE].contiguous()) for start in ends)
    ]


def random_rows(rng: Random, mode: Mode, blocks: int) -> Tensor:
    """Rows of a random job of ``blocks`` blocks, the last of them partial where the mode allows it."""
    short = 0 if mode.has_zvc else rng.randrange(BLOCK_SIDE)
    if mode is Mode.BRC:
        return integers(rng, 0, 1, BLOCK_SIDE * blocks - short, LANES)
    rows = mixed_blocks(rng, -128, 127, blocks).reshape(-1, LANES)
    return rows[: len(rows) - short]


def random_job(rng: Random, blocks: int, modes: Sequence[Mode] = DIRECT_MODES) -> list[Block]:
    """A job of one of ``modes``."""
    mode = rng.choice(modes)
    return job(random_rows(rng, mode, blocks), mode, rng.randint(0, 1))


def whole_job(rng: Random, blocks: int) -> list[Block]:
    """A job of a random mode and content whose blocks all have 8 rows."""
    mode = rng.choice(DIRECT_MODES)
    return job(random_rows(rng, mode, blocks + 1)[: BLOCK_SIDE * blocks], mode, rng.randint(0, 1))


def dense_job(rng: Random, blocks: int) -> list[Block]:
    """A job whose blocks have the greatest length."""
    return job(integers(rng, 1, 127, BLOCK_SIDE * blocks, LANES), Mode.SFPR_ZVC)


def empty_job(blocks: int) -> list[Block]:
    """A job whose blocks have the least length that a block with a mask can have."""
    return job(torch.zeros(BLOCK_SIDE * blocks, LANES), Mode.SFPR_ZVC)


def payload(blocks: Iterable[Block]) -> bytes:
    """The bytes of blocks one after the other."""
    return b"".join(block.packed for block in blocks)


def block_rows(ports: Ports, stream: str, blocks: Iterable[Block]) -> list[int]:
    """Payloads of a stream of :class:`cdu.words.BlockRow`."""
    port = ports[f"{stream}__payload"]
    return [
        pack(dict(port), {"values": row, "ends": int(number == len(block.rows) - 1), "tag": block.tag.fields})
        for block in blocks
        for number, row in enumerate(block.rows.tolist())
    ]


def block_words(ports: Ports, stream: str, blocks: Iterable[Block], rng: Random | None = None) -> list[int]:
    """Payloads of a stream of :class:`cdu.words.BlockWord`; rows behind ``count`` are random, or 0 without ``rng``."""
    port = dict(ports[f"{stream}__payload"])
    per_word = _field(port, "values")["count"] // LANES
    result = []
    for block in blocks:
        rows = block.rows.tolist()
        for start in range(0, len(rows), per_word):
            part = rows[start : start + per_word]
            filled = [value for row in part for value in row]
            behind = LANES * per_word - len(filled)
            filled += [rng.randint(-128, 127) if rng else 0 for _ in range(behind)]
            fields = {"count": len(part), "ends": int(start + per_word >= len(rows)), "tag": block.tag.fields}
            result.append(pack(port, {"values": filled, **fields}))
    return result


def slices(ports: Ports, stream: str, blocks: Iterable[Block]) -> list[int]:
    """Payloads of a stream of :class:`cdu.words.Slice`."""
    port = dict(ports[f"{stream}__payload"])
    size = _field(port, "data")["width"] // 8
    return [
        pack(
            port,
            {
                "data": int.from_bytes(block.packed[start : start + size], "little"),
                "count": len(block.packed[start : start + size]),
                "ends": int(start + size >= len(block.packed)),
                "rows": len(block.rows),
                "tag": block.tag.fields,
            },
        )
        for block in blocks
        for start in range(0, len(block.packed), size)
    ]


def payload_words(ports: Ports, stream: str, payload: bytes) -> list[int]:
    """A payload as the words of a packed stream, at least one: full words, but for the last one, which has ``last``."""
    size = _field(ports[f"{stream}__payload"], "data")["width"] // 8
    return cut_words(ports, stream, payload, [size] * max(1, -(-len(payload) // size)))


def random_words(ports: Ports, stream: str, payload: bytes, rng: Random) -> list[int]:
    """A payload as words of any count, now and then with an empty one that ends it."""
    size = _field(ports[f"{stream}__payload"], "data")["width"] // 8
    counts: list[int] = []
    while sum(counts) < len(payload):
        counts.append(rng.choice((size, size, rng.randint(0, size))))
    return cut_words(ports, stream, payload, counts + [0] * (rng.choice((0, 0, 1)) if counts else 1))


def cut_words(ports: Ports, stream: str, payload: bytes, counts: Sequence[int]) -> list[int]:
    """A payload as words of at most the given counts, ``last`` with the final one."""
    size = _field(ports[f"{stream}__payload"], "data")["width"] // 8
    parts, start = [], 0
    for count in counts:
        parts.append(payload[start : start + count])
        start += count
    data = [list(part.ljust(size, b"\0")) for part in parts]
    last = [0] * (len(parts) - 1) + [1]
    return words(ports, stream, data=torch.tensor(data), count=torch.tensor([len(p) for p in parts]), last=torch.tensor(last))


def decoded_with_zeros(blocks: Sequence[Block], cut: bytes) -> list[bytes]:
    """The bytes that the blocks of a job have when its payload is ``cut`` and zeros follow without end (docs/bitstream.md)."""
    endless = cut + bytes(sum(MASK_BYTES + BLOCK_VALUES for _ in blocks))
    found, start = [], 0
    for block in blocks:
        length = len(block.packed)
        if block.tag.mode.has_zvc:
            length = MASK_BYTES + int.from_bytes(endless[start : start + MASK_BYTES], "little").bit_count()
        found.append(endless[start : start + length])
        start += length
    return found


def dealt(blocks: Sequence[Block], lanes: int, first: int = 0) -> list[list[Block]]:
    """Blocks dealt out to lanes in turn, beginning with lane ``first``."""
    return [list(blocks[(lane - first) % lanes :: lanes]) for lane in range(lanes)]


def _field(port: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A field of a port."""
    return next(field for field in port["fields"] if field["name"] == name)
