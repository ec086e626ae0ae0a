"""Cases of the entropy coder of JPEG-BASE, both directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import torch
from actcodec.golden import entropy_encoder, scan_decoder
from actcodec.golden.zigzag import from_zigzag
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.huffman import STANDARD
from cdu_spec.jpeg import AC_LIMIT, DC_MAX, DC_MIN, EOB, MARKER, MAX_AC_SIZE, MAX_DC_SIZE, ZRL, ZRL_RUN
from cdu_spec.port_fields import pack, unpack
from torch import Tensor

from cdu_verif.cases.block_streams import payload_words
from cdu_verif.cases.case import Case, Cases
from cdu_verif.content.values import corner_blocks, generator, integers, mixed_blocks, words
from cdu_verif.simulation.ports import Ports

#: Number of symbols of a block up to which no cycle is lost.
MOST_AT_RATE = BLOCK_SIDE


def columns(ports: Ports, stream: str, scans: list[Tensor]) -> list[int]:
    """Return payloads of a stream of columns to code: scans of blocks (n, 64) in zig-zag order."""
    return [word for blocks in scans for word in words(ports, stream, **_fields(blocks))]


def decoded_columns(ports: Ports, stream: str, scans: list[bytes]) -> list[int]:
    """Return payloads of a stream of decoded columns of segments, with zeros in a block with an error."""
    found: list[int] = []
    for scan in scans:
        blocks, error = scan_decoder.blocks_of(scan)
        blocks = torch.cat((blocks, torch.zeros(int(error), BLOCK_VALUES, dtype=torch.int16)))
        fields = _fields(blocks)
        found += words(ports, stream, **fields, error=fields["last"] * int(error))
    return found


def _fields(blocks: Tensor) -> dict[str, Tensor]:
    """Return the columns of the blocks (n, 64) of a scan."""
    values = from_zigzag(blocks).transpose(1, 2).reshape(-1, BLOCK_SIDE)
    last = torch.zeros(len(values), dtype=torch.int64)
    last[-BLOCK_SIDE:] = 1
    return {"values": values, "last": last}


def segment(blocks: Tensor) -> bytes:
    """Return the entropy-coded segment of a scan of blocks (n, 64) in zig-zag order."""
    return bytes(entropy_encoder.encode(blocks.to(torch.int16))[1].tolist())


def segments(ports: Ports, stream: str, scans: list[bytes]) -> list[int]:
    """Return payloads of a stream of segments; a decoder's segments end in an empty word if all others are full."""
    return [word for scan in scans for word in payload_words(ports, stream, scan, empty_end=stream == "i")]


def symbol_count(blocks: Tensor) -> Tensor:
    """Return the number of symbols of each block (n, 64), int64 (n,)."""
    present = blocks != 0
    present[:, 0] = True
    counts = torch.zeros(len(blocks), dtype=torch.int64)
    for number, mask in enumerate(present):
        places = mask.nonzero().flatten()
        zrl = (places.diff() - 1).div(ZRL_RUN, rounding_mode="floor").sum()
        counts[number] = len(places) + zrl + int(places[-1] < BLOCK_VALUES - 1)
    return counts


def decaying(rng: Random, count: int, least: int = -3, most: int = 5) -> Tensor:
    """Return blocks (count, 64) in zig-zag order like those of activations: decreasing, each block of its own size."""
    uniform = torch.rand(count, BLOCK_VALUES, generator=generator(rng)).clamp(1e-6, 1 - 1e-6) - 0.5
    noise = -uniform.sign() * (1 - 2 * uniform.abs()).log()  # Laplace's distribution
    size = torch.exp2(integers(rng, least, most, count).float())[:, None]
    return (noise * size * torch.exp(-torch.arange(BLOCK_VALUES) / 8)).round().clamp(-AC_LIMIT, AC_LIMIT).to(torch.int64)


def every_symbol(rng: Random) -> Tensor:
    """Return blocks (n, 64) with every run, size and sign, every ZRL chain, every DC category and sign."""
    made = []
    for symbol in STANDARD.ac.symbols:
        run, size = symbol >> 4, symbol & 15
        if not 0 < size <= MAX_AC_SIZE:
            continue
        for before in range(0, BLOCK_VALUES - 1 - run, ZRL_RUN):
            block = torch.zeros(BLOCK_VALUES, dtype=torch.int64)
            magnitude = rng.randint(1 << size - 1, (1 << size) - 1)
            block[1 + before + run] = rng.choice((-1, 1)) * magnitude
            block[0] = rng.randint(DC_MIN, DC_MAX)
            made.append(block)
    for size in range(MAX_AC_SIZE + 1):
        for dc in (0, (1 << size) - 1, 0, -(1 << size) + 1, DC_MIN if size == MAX_AC_SIZE else 0, DC_MAX):
            made.append(torch.nn.functional.one_hot(torch.tensor(0), BLOCK_VALUES) * dc)
    return torch.stack(made)


def full_of_marks() -> Tensor:
    """Return blocks (n, 64) in whose segment as many bytes as possible are FF."""
    blocks = torch.full((6, BLOCK_VALUES), AC_LIMIT)
    blocks[1::2, 1:] = (1 << MAX_AC_SIZE - 1) - 1
    blocks[::3, 1:] *= (torch.arange(BLOCK_VALUES - 1) % ZRL_RUN == ZRL_RUN - 1).to(torch.int64)
    return blocks


def corner_scans(rng: Random) -> dict[str, list[Tensor]]:
    """Return directed scans by name; the noise has large coefficients, so that each counts and samples do not saturate."""
    low, high = -AC_LIMIT, AC_LIMIT
    dense = integers(rng, 1, 3, 4, BLOCK_VALUES)
    runs = torch.zeros(BLOCK_VALUES, BLOCK_VALUES, dtype=torch.int64)
    for place, block in enumerate(runs):
        block[place::17] = 1
    return {
        **{name: [blocks.flatten(1).contiguous()] for name, blocks in corner_blocks(low, high).items()},
        "dense": [dense],
        "noise": [integers(rng, -127, 127, 8, BLOCK_VALUES)],
        "longest_codes": [torch.full((3, BLOCK_VALUES), low) * (torch.arange(BLOCK_VALUES) % ZRL_RUN == ZRL_RUN - 1)],
        "runs": [runs],
        "every_symbol": [every_symbol(rng)],
        "marks": [full_of_marks()],
        "scans_of_one_block": [block[None] for block in decaying(rng, 24)],
    }


def of_bits(bits: str) -> bytes:
    """Return the segment of these bits, padded with ones and stuffed."""
    filled = bits + "1" * (-len(bits) % 8)
    whole = bytes(int(filled[place : place + 8], 2) for place in range(0, len(filled), 8))
    return whole.replace(bytes([MARKER]), bytes([MARKER, 0]))


def code(symbol: int, extra: str = "") -> str:
    """Return the bits of an AC symbol, followed by ``extra``."""
    number, length = STANDARD.ac.codes[symbol]
    return f"{number:0{length}b}{extra}"


def wrong_scans(rng: Random) -> dict[str, list[bytes]]:
    """Return invalid segments by their fault."""
    usual = segment(decaying(rng, 3))
    dc = f"{STANDARD.dc.codes[0][0]:02b}"
    block = dc + code(EOB)
    largest = f"{STANDARD.dc.codes[MAX_DC_SIZE][0]:09b}" + "1" * MAX_DC_SIZE
    numbers = range(len(usual))
    return {
        "cut": [usual[:length] for length in numbers],
        "continued": [usual + bytes([rng.randrange(256)] * rng.randint(1, 12)) for _ in range(24)],
        "changed": [_changed(rng, segment(decaying(rng, 4))) for _ in range(64)],
        "any_bytes": [bytes(rng.randrange(256) for _ in range(rng.randint(0, 40))) for _ in range(64)],
        "any_stuffed_bytes": [of_bits(f"{rng.getrandbits(400):0400b}") for _ in range(64)],
        "markers": [usual[:at] + bytes([MARKER, rng.randint(1, 255)]) + usual[at:] for at in (*numbers, len(usual))],
        "open_mark": [usual[:at] + bytes([MARKER]) for at in (*numbers, len(usual))],
        "no_code": [of_bits(block * blocks + dc + "1" * 16 + block * 40) for blocks in range(8)],
        "run_leaves": [
            of_bits(dc + code(0xE1, "1") * 4 + code(run << 4 | 1, "0") + code(EOB) + block * 4) for run in range(16)
        ],
        "zrl_to_the_end": [of_bits(dc + code(0x01, "1") * places + code(ZRL) * 3 + code(EOB)) for places in range(17)],
        "zrl_leaves": [of_bits(dc + code(0x01, "1") * places + code(ZRL) * 4 + block) for places in range(1, 17)],
        "dc_out_of_range": [of_bits((largest + code(EOB)) * blocks + block * 20) for blocks in range(1, 4)],
        "wrong_filling": [of_bits(block + rest) for rest in ("0", "10", "1110", "11111111", "1" * 10, "1" * 15)],
        "nothing": [b"", usual, b"", bytes([MARKER]), bytes([MARKER, 0])],
    }


def _changed(rng: Random, scan: bytes) -> bytes:
    """Return a segment with one bit inverted."""
    place = rng.randrange(len(scan))
    return scan[:place] + bytes([scan[place] ^ 1 << rng.randrange(8)]) + scan[place + 1 :]


class _Coder(Cases):
    """Cases of the encoder, or reversed those of the decoder."""

    rate_blocks = 32

    def __init__(self, decoder: bool) -> None:
        self.decoder = decoder

    def case(self, ports: Ports, name: str, scans: list[Tensor], cycles: int | None = None) -> Case:
        """Return a case of scans of blocks (n, 64) in zig-zag order."""
        coded = [segment(blocks) for blocks in scans]
        if self.decoder:
            case = self.decoded(ports, name, coded)
        else:
            case = Case(name, {"i": columns(ports, "i", scans)}, {"o": segments(ports, "o", coded)})
        steady = () if cycles else ("o",) if self.decoder else ("i",)
        return replace(case, steady=steady, cycles=cycles)

    def decoded(self, ports: Ports, name: str, scans: list[bytes]) -> Case:
        """Return a case of any bytes for the decoder."""
        return Case(name, {"i": segments(ports, "i", scans)}, {"o": decoded_columns(ports, "o", scans)})

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return directed blocks, every symbol, and scans of one block; for the decoder also invalid segments."""
        right = [self.case(ports, name, scans) for name, scans in corner_scans(rng).items()]
        return right + self.broken(config, ports, rng)

    def broken(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return invalid segments, between valid ones."""
        if not self.decoder:
            return []
        usual = segment(decaying(rng, 2))
        mixed = {name: [scan for one in scans for scan in (one, usual)] for name, scans in wrong_scans(rng).items()}
        return [self.decoded(ports, name, scans) for name, scans in mixed.items()]

    def defined(self, stream: str, port: Mapping[str, Any], received: list[int]) -> list[int]:
        """Return zeros for the coefficients of a block with an error."""
        return [without_values(port, word) for word in received] if self.decoder else received

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return content of every kind, in one scan or several."""
        return self.case(ports, "random", random_scans(rng, blocks))

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return blocks of up to 8 symbols, which lose no cycle, and others, whose symbols take a cycle each."""
        candidates = decaying(rng, 16 * blocks, -3, 0)
        few = candidates[symbol_count(candidates) <= MOST_AT_RATE][:blocks]
        dense = integers(rng, 1, 63, blocks, BLOCK_VALUES)
        return [
            self.case(ports, "few_symbols", [few]),
            self.case(ports, "zeros", [torch.zeros(blocks, BLOCK_VALUES, dtype=torch.int64)]),
            self.case(ports, "dense", [dense], int(symbol_count(dense).sum())),
        ]


def without_values(port: Mapping[str, Any], word: int) -> int:
    """Return a column, or zeros if its block has an error."""
    fields = unpack(dict(port), word)
    return pack(dict(port), {**fields, "values": [0] * BLOCK_SIDE}) if fields["error"] else word


def random_scans(rng: Random, blocks: int) -> list[Tensor]:
    """Return scans of ``blocks`` blocks together."""
    scans: list[Tensor] = []
    left = blocks
    while left:
        size = rng.randint(1, left)
        content = decaying(rng, size) if rng.randrange(2) else mixed_blocks(rng, -AC_LIMIT, AC_LIMIT, size).flatten(1)
        scans.append(content)
        left -= size
    return scans


ENTROPY_ENCODER, ENTROPY_DECODER = _Coder(decoder=False), _Coder(decoder=True)
