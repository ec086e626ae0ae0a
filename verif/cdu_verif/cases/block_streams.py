"""Payloads of the streams between the parts of an array, from golden bytes and values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import torch
from actcodec.golden import autoquant, brc, zvc
from actcodec.golden.affine import Ranges
from actcodec.golden.codes import pack_codes
from actcodec.golden.heads import pack_low, pack_ranges
from cdu_spec import gmc
from cdu_spec.affine import BASE_BITS, CODE_BITS, MANTISSA_BITS, MAX_EXPONENT, AffineSettings
from cdu_spec.coding import How, ShiftCoding, code_bits, coder_of, seed_of
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES, TILE_BLOCKS, VALUE_BITS
from cdu_spec.modes import LOW_BYTES, MASK_BYTES, STEP_BYTES, Coder, Mode
from cdu_spec.port_fields import pack
from torch import Tensor

from cdu_verif.content.payloads import how_fields, quantizer
from cdu_verif.content.values import integers, mixed_blocks, words
from cdu_verif.simulation.ports import Ports


@dataclass(frozen=True)
class Tag:
    """Fields of :class:`cdu.words.BlockTag`."""

    mode: Mode
    bank: int
    last: int
    how: How = None
    heads: int = 0
    beside: Mapping[str, int] | None = None  #: its quantizer, in modes that ignore it

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields by name."""
        own = {"mode": int(self.mode), "bank": self.bank, "last": self.last, "heads": self.heads}
        return {**own, "how": self.how_fields}

    @property
    def how_fields(self) -> dict[str, dict[str, int]]:
        """Return the fields of :class:`cdu.words.How`."""
        if self.mode is Mode.JPEG_ACT:
            return how_fields(self.how or ShiftCoding())
        return {"affine": dict(self.beside)} if self.beside and self.how is None else how_fields(self.how)


#: Quantizers in modes that ignore them: they pass without any effect.
NO_USE = (quantizer(None), {"bits_log2": 3, "step_log2": BASE_BITS - 1, "stochastic": 1, "block_range": 1, "statistics": 1})


@dataclass(frozen=True)
class StreamBlock:
    """One block of a job: rows (1..8, 8) of int8 or of codes (in the bits of an int8), and its golden bytes."""

    tag: Tag
    rows: Tensor
    packed: bytes

    @property
    def range(self) -> dict[str, int]:
        """Return the fields of :class:`cdu.words.Range` with which the block begins, or of the bytes there if it has none.

        An exponent too large for its field is the greatest one that fits. Zeros for a block of GMC.
        """
        head = (b"" if coder_of(self.tag.how) is Coder.GMC else self.packed).ljust(LOW_BYTES + STEP_BYTES, b"\0")
        mantissa, exponent = head[LOW_BYTES : LOW_BYTES + STEP_BYTES]
        return {
            "low": int.from_bytes(head[:LOW_BYTES], "little", signed=True),
            "mantissa": mantissa,
            "exponent": min(exponent, (1 << MAX_EXPONENT.bit_length()) - 1),
        }


def block_modes(config: CduConfig) -> list[Mode]:
    """Return the modes whose payload is made of blocks, coded as published."""
    return list(config.packed_modes)


def random_settings(rng: Random, mode: Mode) -> AffineSettings | None:
    """Return random settings of the affine quantiser if a mode has them."""
    if not mode.is_affine:
        return None
    bits = rng.choice(CODE_BITS)
    block_range = mode is Mode.DIVISION and rng.random() < 0.5
    found = mode is Mode.ACTNN or block_range
    step_log2 = 0 if found else rng.randint(int(mode is Mode.DIVISION), BASE_BITS - bits)
    return AffineSettings(bits, step_log2, rng.random() < 0.5, block_range, rng.getrandbits(32))


def packed_block(rows: Tensor, mode: Mode, settings: AffineSettings | None = None, head: bytes = b"") -> bytes:
    """Return the golden bytes of one block; ``head`` precedes the codes."""
    if settings is not None:
        return head + bytes(_packed_codes(rows.view(torch.uint8), mode, settings).flatten().tolist())
    if mode is Mode.BRC:
        return bytes(brc.encode(rows.reshape(-1).float()).tolist())
    if mode.has_zvc:
        return bytes(zvc.encode(rows.reshape(1, BLOCK_VALUES)).tolist())
    return bytes(rows.reshape(-1).view(torch.uint8).tolist())


def _packed_codes(codes: Tensor, mode: Mode, settings: AffineSettings) -> Tensor:
    if mode is not Mode.AUTOQUANTZ:
        return pack_codes(codes, settings.bits)
    # Integers that have these codes
    signed = codes.to(torch.int32) - (1 << (settings.bits - 1))
    exact = AffineSettings(settings.bits, settings.step_log2, stochastic=False)
    return autoquant.encode_masked((signed << settings.step_log2).to(torch.int16), exact)


def job(
    rows: Tensor, mode: Mode, bank: int = 0, settings: AffineSettings | None = None, rng: Random | None = None
) -> list[StreamBlock]:
    """Return the blocks of a job of rows (n, 8): quantised values or codes, in modes with masks or in tiles whole blocks.

    ``rng`` draws the ranges with which blocks begin.
    """
    rows = rows.reshape(-1, LANES).to(torch.uint8 if mode.is_affine else torch.int8).view(torch.int8).contiguous()
    starts = range(0, len(rows), BLOCK_SIDE)
    result = []
    for number, start in enumerate(starts):
        part = rows[start : start + BLOCK_SIDE].contiguous()
        head = b""
        if (
            settings is not None
            and rng is not None
            and (mode is Mode.DIVISION or (mode is Mode.ACTNN and number % TILE_BLOCKS == 0))
        ):
            head = _random_head(rng, settings.block_range or mode is Mode.ACTNN)
        tag = Tag(mode, bank, int(start == starts[-1]), settings, int(head != b""), beside=NO_USE[bank])
        result.append(StreamBlock(tag, part, packed_block(part, mode, settings, head)))
    return result


def _random_head(rng: Random, found: bool) -> bytes:
    low = integers(rng, -(1 << (BASE_BITS - 1)), (1 << (BASE_BITS - 1)) - 1, 1)
    step = integers(rng, 1, (1 << MANTISSA_BITS) - 1, 1), integers(rng, 0, MAX_EXPONENT, 1)
    return bytes((pack_ranges(Ranges(low, *step)) if found else pack_low(low)).flatten().tolist())


def random_rows(rng: Random, mode: Mode, blocks: int, settings: AffineSettings | None = None) -> Tensor:
    """Return the rows of a random job of ``blocks`` blocks, the last one partial if the mode allows it."""
    short = 0 if mode.has_zvc or mode.in_tiles else rng.randrange(BLOCK_SIDE)
    if settings is not None:
        codes = mixed_blocks(rng, 0, settings.levels, blocks).reshape(-1, LANES)
        if mode is Mode.AUTOQUANTZ:  # zeros are in the middle
            codes = codes ^ (1 << (settings.bits - 1))
        return codes[: len(codes) - short]
    if mode is Mode.BRC:
        return integers(rng, 0, 1, BLOCK_SIDE * blocks - short, LANES)
    rows = mixed_blocks(rng, -128, 127, blocks).reshape(-1, LANES)
    return rows[: len(rows) - short]


def random_job(rng: Random, blocks: int, modes: Sequence[Mode]) -> list[StreamBlock]:
    """Return a job of one of ``modes``."""
    mode = rng.choice(modes)
    settings = random_settings(rng, mode)
    return job(random_rows(rng, mode, blocks, settings), mode, rng.randint(0, 1), settings, rng)


def whole_job(rng: Random, blocks: int, modes: Sequence[Mode]) -> list[StreamBlock]:
    """Return a job of one of ``modes`` with random content whose blocks all have 8 rows."""
    mode = rng.choice(modes)
    settings = random_settings(rng, mode)
    rows = random_rows(rng, mode, blocks + 1, settings)[: BLOCK_SIDE * blocks]
    return job(rows, mode, rng.randint(0, 1), settings, rng)


def dense_job(rng: Random, blocks: int, mode: Mode = Mode.SFPR_ZVC) -> list[StreamBlock]:
    """Return a job whose blocks have the greatest length possible in a mode with masks."""
    settings = AffineSettings(VALUE_BITS) if mode.is_affine else None
    return job(integers(rng, 1, 127, BLOCK_SIDE * blocks, LANES), mode, 0, settings, rng)


def empty_job(blocks: int, mode: Mode = Mode.SFPR_ZVC) -> list[StreamBlock]:
    """Return a job whose blocks have the least length possible with a mask."""
    settings = AffineSettings(VALUE_BITS) if mode.is_affine else None
    zero = 1 << (VALUE_BITS - 1) if mode.is_affine else 0
    return job(torch.full((BLOCK_SIDE * blocks, LANES), zero), mode, 0, settings)


def with_integers(block: StreamBlock) -> StreamBlock:
    """Return a block as it comes to the encoder: in mode autoquantz with integers around zero in place of their codes."""
    settings = block.tag.how
    if not isinstance(settings, AffineSettings) or block.tag.mode is not Mode.AUTOQUANTZ:
        return block
    return replace(block, rows=(block.rows.view(torch.uint8) ^ (1 << (settings.bits - 1))).view(torch.int8))


def payload(blocks: Iterable[StreamBlock]) -> bytes:
    """Return the bytes of blocks one after the other."""
    return b"".join(block.packed for block in blocks)


def block_rows(ports: Ports, stream: str, blocks: Iterable[StreamBlock], numbers: Mapping[int, int] | None = None) -> list[int]:
    """Return payloads of a stream of :class:`cdu.words.BlockRow`; ``numbers``: a block's number in its job by ``id(block)``."""
    port = dict(ports[f"{stream}__payload"])
    drawn = any(entry["name"] == "seed" for entry in port["fields"])
    result = []
    for block in blocks:
        beside = _beside(port, block)
        if drawn and numbers is not None:
            beside |= {"seed": seed_of(block.tag.how), "number": numbers[id(block)]}
        for number, row in enumerate(block.rows.tolist()):
            result.append(pack(port, {"values": row, "ends": int(number == len(block.rows) - 1), **beside}))
    return result


def _beside(port: Mapping[str, Any], block: StreamBlock) -> dict[str, Any]:
    """Return the fields common to all rows or words of a block: the tag, and its range if the stream has ranges."""
    ranged = any(entry["name"] == "range" for entry in port["fields"])
    return {"tag": block.tag.fields, **({"range": block.range} if ranged else {})}


def block_words(ports: Ports, stream: str, blocks: Iterable[StreamBlock], rng: Random | None = None) -> list[int]:
    """Return payloads of a stream of :class:`cdu.words.BlockWord`; rows behind ``count`` are random, or 0 without ``rng``."""
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
            fields = {"count": len(part), "ends": int(start + per_word >= len(rows)), **_beside(port, block)}
            result.append(pack(port, {"values": filled, **fields}))
    return result


def slices(ports: Ports, stream: str, blocks: Iterable[StreamBlock]) -> list[int]:
    """Return payloads of a stream of :class:`cdu.words.Slice`."""
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


def payload_words(ports: Ports, stream: str, payload: bytes, empty_end: bool = False) -> list[int]:
    """Return a payload as the words of a packed stream, at least one: full words, apart from the last one, which has ``last``.

    With ``empty_end`` a payload of full words ends in an empty one.
    """
    size = _field(ports[f"{stream}__payload"], "data")["width"] // 8
    whole = bool(payload) and len(payload) % size == 0
    return cut_words(ports, stream, payload, [size] * max(1, -(-len(payload) // size)) + [0] * (whole and empty_end))


def random_words(ports: Ports, stream: str, payload: bytes, rng: Random) -> list[int]:
    """Return a payload as words of any count, at times with an empty one that ends it."""
    size = _field(ports[f"{stream}__payload"], "data")["width"] // 8
    counts: list[int] = []
    while sum(counts) < len(payload):
        counts.append(rng.choice((size, size, rng.randint(0, size))))
    return cut_words(ports, stream, payload, counts + [0] * (rng.choice((0, 0, 1)) if counts else 1))


def cut_words(ports: Ports, stream: str, payload: bytes, counts: Sequence[int]) -> list[int]:
    """Return a payload as words of at most the given counts, ``last`` with the final one."""
    size = _field(ports[f"{stream}__payload"], "data")["width"] // 8
    parts, start = [], 0
    for count in counts:
        parts.append(payload[start : start + count])
        start += count
    data = [list(part.ljust(size, b"\0")) for part in parts]
    last = [0] * (len(parts) - 1) + [1]
    return words(ports, stream, data=torch.tensor(data), count=torch.tensor([len(p) for p in parts]), last=torch.tensor(last))


def decoded_with_zeros(blocks: Sequence[StreamBlock], cut: bytes) -> list[bytes]:
    """Return the bytes of a job's blocks if its payload is ``cut`` and zeros follow (docs/reference/bitstream.md)."""
    endless = cut + bytes(sum(gmc.MAX_BLOCK_BYTES for _ in blocks))
    found, start = [], 0
    for block in blocks:
        length = len(block.packed)
        if coder_of(block.tag.how) is Coder.GMC:
            length = gmc.block_bytes(endless[start])
        elif block.tag.mode.has_zvc:
            bits = code_bits(block.tag.how)
            mask = endless[start : start + MASK_BYTES]
            length = MASK_BYTES + sum(-(-row.bit_count() * bits // VALUE_BITS) for row in mask)
        found.append(endless[start : start + length])
        start += length
    return found


def dealt(blocks: Sequence[StreamBlock], lanes: int) -> list[list[StreamBlock]]:
    """Return blocks dealt out to lanes in turn, beginning with lane 0."""
    return [list(blocks[lane::lanes]) for lane in range(lanes)]


def _field(port: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a field of a port."""
    return next(field for field in port["fields"] if field["name"] == name)
