"""Cases of JPEG's encoder and decoder, whole grayscale scans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import torch
from actcodec.golden import jpeg_base, scan_decoder
from actcodec.golden.dct import matrix
from actcodec.golden.zigzag import from_zigzag
from cdu_spec import dqt
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.jpeg import ZIGZAG
from cdu_spec.sfpr import VALUE_MAX, VALUE_MIN
from torch import Tensor

from cdu_verif.cases.case import Case, Cases
from cdu_verif.cases.entropy_coder import (
    MOST_AT_RATE,
    corner_scans,
    decaying,
    random_scans,
    segment,
    segments,
    symbol_count,
    without_values,
    wrong_scans,
)
from cdu_verif.content.values import corner_blocks, integers, mixed_blocks, words
from cdu_verif.simulation.ports import Ports

#: Greatest number of cycles lost per block in the decoder, as the inverse DCT lets a block go alone if its successor is late.
MOST_LOST = 4
#: Divisors in zig-zag order.
Table = tuple[int, ...]
_ONES, _MOST = (1,) * BLOCK_VALUES, (dqt.MAX_DIVISOR,) * BLOCK_VALUES


def image_table(quality: int) -> Table:
    """Return the table of an image of this quality (T.81, Annex K.1)."""
    by_row = dqt.image_table(quality)
    return tuple(by_row[index] for index in ZIGZAG)


def port_table(divisors: Sequence[int]) -> list[int]:
    """Return divisors in zig-zag order in the order of the port."""
    return [int(divisor) for divisor in from_zigzag(torch.tensor(divisors)).T.flatten()]


def quantized(config: CduConfig, samples: Tensor, divisors: Table) -> Tensor:
    """Return coefficients (n, 64) in zig-zag order of a scan of blocks (n, 8, 8) of samples."""
    strip = samples.to(torch.int8).transpose(0, 1).reshape(BLOCK_SIDE, -1)
    return jpeg_base.forward(strip, divisors, config.const_bits, config.pass1_bits, config.rounding_mode)


def restored(config: CduConfig, coefficients: Tensor, divisors: Table) -> Tensor:
    """Return samples (n, 8, 8) of a scan of quantised coefficients (n, 64) in zig-zag order."""
    return jpeg_base.inverse(coefficients.to(torch.int16), divisors, config.const_bits, config.pass1_bits)


def sample_rows(ports: Ports, stream: str, scans: Sequence[Tensor]) -> list[int]:
    """Return payloads of a stream of rows to encode: scans of blocks (n, 8, 8) of samples."""
    return [word for samples in scans for word in words(ports, stream, **_fields(samples))]


def decoded_rows(config: CduConfig, ports: Ports, stream: str, scans: Sequence[bytes], divisors: Table) -> list[int]:
    """Return payloads of a stream of decoded rows of segments, with zeros in a block with an error."""
    found: list[int] = []
    for scan in scans:
        blocks, error = scan_decoder.blocks_of(scan)
        wrong = torch.zeros(int(error), BLOCK_SIDE, BLOCK_SIDE, dtype=torch.int8)
        fields = _fields(torch.cat((restored(config, blocks, divisors), wrong)))
        found += words(ports, stream, **fields, error=fields["last"] * int(error))
    return found


def _fields(samples: Tensor) -> dict[str, Tensor]:
    """Return rows of the blocks (n, 8, 8) of a scan."""
    last = torch.zeros(BLOCK_SIDE * len(samples), dtype=torch.int64)
    last[-BLOCK_SIDE:] = 1
    return {"values": samples.reshape(-1, BLOCK_SIDE), "last": last}


def _random_table(rng: Random) -> Table:
    if rng.randrange(2):
        return image_table(rng.randint(1, 100))
    return tuple(integers(rng, 1, dqt.MAX_DIVISOR, BLOCK_VALUES).tolist())


class _Encoder(Cases):
    rate_blocks = 32

    def case(
        self, config: CduConfig, ports: Ports, name: str, scans: Sequence[Tensor], divisors: Table, at_rate: bool = False
    ) -> Case:
        """Return a case of scans of blocks (n, 8, 8) of samples; ``at_rate``: they lose no cycle."""
        coded = [segment(quantized(config, samples, divisors)) for samples in scans]
        inputs, expected = sample_rows(ports, "i", scans), segments(ports, "o", coded)
        steady = ("i",) if at_rate else ()
        return Case(name, {"i": inputs}, {"o": expected}, {"divisors": port_table(divisors)}, steady=steady)

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return directed blocks, those with the greatest coefficients, and scans of one block; tables of all kinds."""
        contents = {name: [blocks] for name, blocks in corner_blocks(VALUE_MIN, VALUE_MAX).items()}
        basis = matrix(config.const_bits)
        signs = torch.einsum("vr,uc->vurc", basis, basis).reshape(-1, BLOCK_SIDE, BLOCK_SIDE)
        greatest = torch.cat((torch.where(signs > 0, VALUE_MAX, VALUE_MIN), torch.where(signs > 0, VALUE_MIN, VALUE_MAX)))
        contents["greatest_coefficients"] = [greatest]
        contents["scans_of_one_block"] = [block[None] for block in mixed_blocks(rng, VALUE_MIN, VALUE_MAX, 24)]
        tables = {"ones": _ONES, "quality_75": image_table(75), "most": _MOST}
        return [
            self.case(config, ports, f"{name} by {title}", scans, divisors)
            for name, scans in contents.items()
            for title, divisors in tables.items()
        ]

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return noise, or samples of coefficients of every kind, in one scan or several, by a random table."""
        divisors = _random_table(rng)
        scans = [
            restored(config, scan, divisors) if rng.randrange(2) else mixed_blocks(rng, VALUE_MIN, VALUE_MAX, len(scan))
            for scan in random_scans(rng, blocks)
        ]
        return self.case(config, ports, "random", scans, divisors)

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return blocks of up to 8 symbols, which lose no cycle, and others, whose symbols take a cycle each."""
        divisors = image_table(75)
        candidates = restored(config, decaying(rng, 16 * blocks, -3, 0), divisors)
        few = candidates[symbol_count(quantized(config, candidates, divisors)) <= MOST_AT_RATE][:blocks]
        noise = integers(rng, VALUE_MIN, VALUE_MAX, blocks, BLOCK_SIDE, BLOCK_SIDE)
        dense = self.case(config, ports, "dense", [noise], _ONES)
        return [
            self.case(config, ports, "few_symbols", [few], divisors, at_rate=True),
            self.case(config, ports, "zeros", [torch.zeros(blocks, BLOCK_SIDE, BLOCK_SIDE)], divisors, at_rate=True),
            replace(dense, cycles=int(symbol_count(quantized(config, noise, _ONES)).sum())),
        ]


class _Decoder(Cases):
    rate_blocks = 32

    def case(self, config: CduConfig, ports: Ports, name: str, scans: Sequence[bytes], divisors: Table) -> Case:
        """Return a case of any bytes."""
        inputs, expected = segments(ports, "i", list(scans)), decoded_rows(config, ports, "o", scans, divisors)
        return Case(name, {"i": inputs}, {"o": expected}, {"divisors": port_table(divisors)})

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return directed coefficients by tables of all kinds, some of which saturate, and invalid segments."""
        tables = {"ones": _ONES, "quality_75": image_table(75), "most": _MOST}
        right = [
            self.case(config, ports, f"{name} by {title}", [segment(blocks) for blocks in scans], divisors)
            for name, scans in corner_scans(rng).items()
            for title, divisors in tables.items()
        ]
        return right + self.broken(config, ports, rng)

    def broken(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return invalid segments, between valid ones."""
        usual = segment(decaying(rng, 2))
        return [
            self.case(config, ports, name, [scan for one in scans for scan in (one, usual)], image_table(75))
            for name, scans in wrong_scans(rng).items()
        ]

    def defined(self, stream: str, port: Mapping[str, Any], received: list[int]) -> list[int]:
        """Return zeros for the samples of a block with an error."""
        return [without_values(port, word) for word in received]

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return coefficients of every kind, in one scan or several, by a random table."""
        scans = [segment(blocks) for blocks in random_scans(rng, blocks)]
        return self.case(config, ports, "random", scans, _random_table(rng))

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return blocks of up to 8 symbols, which lose no cycle, and longer ones, whose symbols take a cycle each or more."""
        candidates = decaying(rng, 16 * blocks, -3, 0)
        few = candidates[symbol_count(candidates) <= MOST_AT_RATE][:blocks]
        zeros, dense = torch.zeros(blocks, BLOCK_VALUES, dtype=torch.int64), integers(rng, 1, 63, blocks, BLOCK_VALUES)
        # As many coefficients as fill the time of a block with EOB, and one more in every other block
        nearly = dense * (torch.arange(BLOCK_VALUES) < MOST_AT_RATE - 1 + torch.arange(blocks)[:, None] % 2)
        made = {
            name: self.case(config, ports, name, [segment(content)], image_table(75))
            for name, content in (("few_symbols", few), ("zeros", zeros), ("dense", dense), ("nearly", nearly))
        }
        return [
            replace(made["few_symbols"], steady=("o",)),
            replace(made["zeros"], steady=("o",)),
            replace(made["dense"], cycles=int(symbol_count(dense).sum())),
            replace(made["nearly"], cycles=int(symbol_count(nearly).sum()) + MOST_LOST * blocks),
        ]


JPEG_ENCODER, JPEG_DECODER = _Encoder(), _Decoder()
