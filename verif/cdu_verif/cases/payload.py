"""Cases of the coders of one CDU, ZVC and BRC, both directions."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import torch
from cdu.delivery.blocks import affine
from cdu_spec.affine import CODE_BITS, AffineSettings
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES
from cdu_spec.modes import STATISTICS_BYTES, Mode
from torch import Tensor

from cdu_verif.cases.block_streams import (
    StreamBlock,
    Tag,
    block_modes,
    block_rows,
    dense_job,
    empty_job,
    job,
    payload_words,
    random_job,
    random_rows,
    random_settings,
    slices,
    whole_job,
    with_integers,
)
from cdu_verif.cases.case import Case, Cases
from cdu_verif.content.values import corner_blocks, integers
from cdu_verif.simulation.ports import Ports

__all__ = [
    "AFFINE_DECODER",
    "AFFINE_ENCODER",
    "BRC_DECODER",
    "BRC_ENCODER",
    "ZVC_DECODER",
    "ZVC_ENCODER",
    "payload_words",
    "populations",
]


def populations(rng: Random) -> Tensor:
    """Return blocks (65, 64) with 0, 1, ... 64 non-zero values at random places."""
    blocks = integers(rng, 1, 127, BLOCK_VALUES + 1, BLOCK_VALUES)
    order = torch.rand(blocks.shape, generator=torch.Generator().manual_seed(rng.getrandbits(32))).argsort(1)
    return torch.where(order < torch.arange(BLOCK_VALUES + 1)[:, None], blocks, 0)


class _Coder(Cases):
    """Cases of an encoder, or reversed those of a decoder."""

    def __init__(self, mode: Mode, decoder: bool) -> None:
        self.mode, self.decoder = mode, decoder

    def case(self, ports: Ports, name: str, blocks: list[StreamBlock]) -> Case:
        """Return a case of blocks of one job or several. A decoder is fed by slices, which may be fewer than cycles."""
        if self.decoder:
            return Case(name, {"i": slices(ports, "i", blocks)}, {"o": block_rows(ports, "o", blocks)}, steady=("o",))
        return Case(name, {"i": block_rows(ports, "i", blocks)}, {"o": slices(ports, "o", blocks)}, steady=("i",))

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return directed blocks; every mask population; blocks of every number of rows; every byte."""
        if self.mode is Mode.BRC:
            rows = integers(rng, 0, 1, 256, LANES)
            cases = [
                self.case(ports, f"{count}_rows", job(rows[:count], self.mode)) for count in (*range(1, 18), 31, 32, 33, 256)
            ]
            every = torch.arange(256)[:, None] >> torch.arange(8) & 1
            # Many short blocks: their tags can change every cycle.
            counts = (*range(1, BLOCK_SIDE + 1), *rng.choices(range(1, 4), k=60))
            single = [block for count in counts for block in job(rows[:count], self.mode, rng.randint(0, 1))]
            return [
                *cases,
                self.case(ports, "every_byte", job(every, self.mode)),
                self.case(ports, "jobs_of_one_block", single),
            ]
        cases = [self.case(ports, name, job(blocks, self.mode)) for name, blocks in corner_blocks(-128, 127).items()]
        several = populations(rng)
        cases.append(self.case(ports, "every_population", job(several, self.mode)))
        single = [block for count, values in enumerate(several) for block in job(values, self.mode, count % 2)]
        return [*cases, self.case(ports, "jobs_of_one_block", single)]

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return random content, in one job or several."""
        found: list[StreamBlock] = []
        while len(found) < blocks:
            size = rng.randint(1, blocks - len(found))
            found += job(random_rows(rng, self.mode, size), self.mode, rng.randint(0, 1))
        return self.case(ports, "random", found)

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return random content, and if the length depends on it the shortest and the longest."""
        whole = random_rows(rng, self.mode, blocks)[: BLOCK_SIDE * (blocks - 1)]
        cases = [self.case(ports, "random", job(whole, self.mode))]
        if self.mode is not Mode.BRC:
            cases.append(self.case(ports, "all_zero", empty_job(blocks)))
            cases.append(self.case(ports, "incompressible", dense_job(rng, blocks)))
        return cases


class _AffineCoder(Cases):
    """Cases of an encoder of all modes, most of them affine, or reversed those of a decoder."""

    def __init__(self, decoder: bool) -> None:
        self.decoder = decoder

    def case(self, ports: Ports, name: str, blocks: list[StreamBlock]) -> Case:
        """Return a case of blocks of one job or several; there may be fewer slices than cycles."""
        if not self.decoder:
            entering = [with_integers(block) for block in blocks]
            return Case(name, {"i": block_rows(ports, "i", entering)}, {"o": slices(ports, "o", blocks)}, steady=("i",))
        return Case(name, {"i": slices(ports, "i", blocks)}, {"o": block_rows(ports, "o", blocks)}, steady=("o",))

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return every mode with every number of bits; every population of a mask; every number of rows; statistics."""
        cases = []
        for mode in affine(config).built_modes:
            if not mode.is_affine:
                continue
            for bits in CODE_BITS:
                settings = replace(random_settings(rng, mode) or AffineSettings(), bits=bits, step_log2=0)
                if mode is Mode.AUTOQUANTZ:
                    codes = torch.where(populations(rng) != 0, integers(rng, 1, settings.levels, BLOCK_VALUES), 0)
                    content = [codes ^ (1 << (bits - 1))]
                else:
                    content = [random_rows(rng, mode, size, settings) for size in (5, 1, 9)]
                jobs = [job(rows, mode, rng.randint(0, 1), settings, rng) for rows in content]
                cases.append(self.case(ports, f"{mode.label}_{bits}_bits", [block for part in jobs for block in part]))
                if not (mode.has_zvc or mode.in_tiles):
                    rows = random_rows(rng, mode, 2, settings)[:BLOCK_SIDE]
                    single = [block for count in range(1, len(rows) + 1) for block in job(rows[:count], mode, 0, settings)]
                    cases.append(self.case(ports, f"{mode.label}_{bits}_bits_rows", single))
        if not self.decoder and Mode.DIVISION in affine(config).built_modes:
            cases.append(self.case(ports, "statistics", _among_others(rng)))
        return cases

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return random content in jobs of all modes."""
        found: list[StreamBlock] = []
        while len(found) < blocks:
            found += random_job(rng, rng.randint(1, blocks - len(found)), block_modes(affine(config)))
        return self.case(ports, "random", found)

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return random content, in every affine mode separately."""
        modes = [mode for mode in affine(config).built_modes if mode.is_affine]
        return [self.case(ports, mode.label, whole_job(rng, blocks, [mode])) for mode in modes]


def _among_others(rng: Random) -> list[StreamBlock]:
    """Return blocks of mode division alternating with statistics, of which the first bytes of row 0 are kept."""
    found = []
    for bits in CODE_BITS * 4:
        settings = AffineSettings(bits, 1)
        found += job(random_rows(rng, Mode.DIVISION, 1, settings), Mode.DIVISION, 0, settings, rng)
        tag = Tag(Mode.DIVISION, 0, 1, AffineSettings(bits, statistics=True), 1)
        rows = integers(rng, -128, 127, BLOCK_SIDE, LANES).to(torch.int8)
        found.append(StreamBlock(tag, rows, bytes(rows[0, :STATISTICS_BYTES].view(torch.uint8).tolist())))
    return found


AFFINE_ENCODER, AFFINE_DECODER = _AffineCoder(decoder=False), _AffineCoder(decoder=True)
ZVC_ENCODER, ZVC_DECODER = _Coder(Mode.SFPR_ZVC, decoder=False), _Coder(Mode.SFPR_ZVC, decoder=True)
BRC_ENCODER, BRC_DECODER = _Coder(Mode.BRC, decoder=False), _Coder(Mode.BRC, decoder=True)
