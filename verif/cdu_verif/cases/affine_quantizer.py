"""Cases of the affine quantiser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import torch
from actcodec.golden.affine import NEAREST, Ranges, codes_of
from actcodec.golden.block_statistics import block_mean, least_and_greatest
from actcodec.golden.random_bits import random_bits
from cdu.delivery.blocks import affine
from cdu_spec.affine import BASE_BITS, CODE_BITS, AffineSettings
from cdu_spec.coding import seed_of
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES
from cdu_spec.modes import Mode
from cdu_spec.port_fields import pack, unpack
from cdu_spec.register_types import COUNT_BITS
from torch import Tensor

from cdu_verif.cases.block_streams import Tag, block_modes, random_settings
from cdu_verif.cases.case import Case
from cdu_verif.cases.jobs import JobCases
from cdu_verif.content.values import integers
from cdu_verif.simulation.ports import Ports

_LEAST, _MOST = -(1 << (BASE_BITS - 1)), (1 << (BASE_BITS - 1)) - 1
#: Bits of a block's number in its job.
_NUMBER_BITS = COUNT_BITS - (BLOCK_SIDE - 1).bit_length()
_NOTHING = {"low": 0, "mantissa": 0, "exponent": 0}
#: Cycles from the first row in to the first row out, and between the last rows.
_LATENCY = 4
#: A job: its mode and settings, rows, and the number of its first block.
_Job: TypeAlias = tuple[Mode, AffineSettings | None, int, int]


@dataclass(frozen=True)
class _Block:
    """A block of a job: rows of int16, and its range in the form of its header (zeros where it has none)."""

    tag: Tag
    number: int
    rows: Tensor
    low: int = 0
    mantissa: int = 0
    exponent: int = 0

    @classmethod
    def of(cls, tag: Tag, number: int, rows: Tensor) -> _Block:
        """Return the block with the range that the golden model finds."""
        settings = tag.how
        if not isinstance(settings, AffineSettings) or tag.mode not in (Mode.DIVISION, Mode.ACTNN):
            return cls(tag, number, rows)
        values = rows.reshape(1, BLOCK_VALUES)
        found = Ranges.found(*least_and_greatest(values), settings.bits)
        low = found.low if tag.mode is Mode.ACTNN or settings.block_range else block_mean(values)
        return cls(tag, number, rows, int(low), int(found.mantissa), int(found.exponent))

    @property
    def range(self) -> dict[str, int]:
        """Return the fields of :class:`cdu.words.Range`."""
        return {"low": self.low, "mantissa": self.mantissa, "exponent": self.exponent}

    @property
    def golden(self) -> Tensor:
        """Return the quantiser's output, 0 to 255, (rows, 8)."""
        settings, mode = self.tag.how, self.tag.mode
        if not isinstance(settings, AffineSettings) or settings.statistics:
            return self.rows.to(torch.int64) & 255
        rho: Tensor | int = 0 if mode is Mode.BLPA else NEAREST
        if settings.stochastic and mode is not Mode.BLPA:
            rho = random_bits(settings.seed, BLOCK_SIDE * self.number, len(self.rows))
        codes = codes_of(self.rows, self._ranges(settings), settings.bits, rho).to(torch.int64)
        if mode is not Mode.AUTOQUANTZ:
            return codes
        return (codes - (1 << (settings.bits - 1))) & settings.levels

    def _ranges(self, settings: AffineSettings) -> Ranges:
        if self.tag.mode is Mode.ACTNN or settings.block_range:
            return Ranges(*(torch.tensor([part], dtype=torch.int32) for part in (self.low, self.mantissa, self.exponent)))
        low = settings.fixed_low
        if self.tag.mode is Mode.DIVISION:
            low = self.low - (settings.levels << settings.step_log2 >> 1)
        return Ranges.fixed(torch.tensor([low], dtype=torch.int32), settings.step_log2)


def _content(rng: Random, rows: int, narrow: bool) -> Tensor:
    """Return rows of int16 near each other, anywhere, or at the ends; of int8 for modes in which values pass unchanged."""
    if narrow:
        return integers(rng, -128, 127, rows, LANES).to(torch.int16)
    spread = rng.choice((0, 3, 15, 255, rng.randint(256, 5000), 65535))
    near = (rng.randint(_LEAST, _MOST) + integers(rng, 0, spread, rows, LANES)).clamp(_LEAST, _MOST)
    ends = torch.where(integers(rng, 0, 1, rows, LANES) == 0, _LEAST, _MOST)
    around_zero = integers(rng, -spread // 2, spread // 2, rows, LANES).clamp(_LEAST, _MOST)
    return rng.choice((near, near, around_zero, ends)).to(torch.int16)


class _AffineQuantizer(JobCases[_Job]):
    def built(self, config: CduConfig) -> CduConfig:
        """Return the configuration with affine modes."""
        return affine(config)

    def job(self, rng: Random, mode: Mode, settings: AffineSettings | None, rows: int, first: int) -> list[_Block]:
        """Return the blocks of a job of ``rows`` rows, the first of them with the number ``first``."""
        starts = range(0, rows, BLOCK_SIDE)
        heads = int(mode in (Mode.DIVISION, Mode.ACTNN))
        return [
            _Block.of(
                Tag(mode, 0, int(start == starts[-1]), settings, heads),
                first + number,
                _content(rng, min(BLOCK_SIDE, rows - start), settings is None),
            )
            for number, start in enumerate(starts)
        ]

    def case(self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[_Job]) -> Case:
        """Return a case with rows in and rows out."""
        blocks = [block for job in jobs for block in self.job(rng, *job)]
        inputs, expected = [], []
        entering, leaving = dict(ports["i__payload"]), dict(ports["o__payload"])
        for block in blocks:
            beside = {"range": block.range, "number": block.number, "seed": seed_of(block.tag.how)}
            for number, (row, golden) in enumerate(zip(block.rows.tolist(), block.golden.tolist(), strict=True)):
                common = {"ends": int(number == len(block.rows) - 1), "tag": block.tag.fields}
                inputs.append(pack(entering, _only(entering, {"values": row, **common, **beside})))
                holds = number == 0 and block.tag.heads
                out = {"values": [_signed(value) for value in golden], **common, "range": block.range if holds else _NOTHING}
                expected.append(pack(leaving, _only(leaving, out)))
        return Case(name, {"i": inputs}, {"o": expected}, cycles=len(inputs) + _LATENCY)

    def corner_jobs(self, config: CduConfig, rng: Random) -> Mapping[str, Sequence[_Job]]:
        """Return every mode with every number of bits, step and rounding; statistics; late blocks of large jobs."""
        found: dict[str, Sequence[_Job]] = {}
        for mode in block_modes(config):
            if not mode.is_affine:
                found[mode.label] = [(mode, None, 24, 0)]
                continue
            for bits in CODE_BITS:
                steps: Sequence[int] = range(int(mode is Mode.DIVISION), BASE_BITS - bits + 1)
                jobs = [] if mode is Mode.ACTNN else [AffineSettings(bits, step, False) for step in steps]
                if mode is not Mode.BLPA:
                    kinds = [0] * 8 if mode is Mode.ACTNN else steps
                    jobs += [AffineSettings(bits, step, True, seed=rng.getrandbits(32)) for step in kinds]
                if mode is Mode.DIVISION:
                    jobs += [AffineSettings(bits, 0, random, True, rng.getrandbits(32)) for random in (False, True) * 8]
                    jobs.insert(3, AffineSettings(bits, statistics=True))
                late = (1 << _NUMBER_BITS) - 2
                found[f"{mode.label}_{bits}_bits"] = [
                    (mode, settings, 16, rng.choice((0, rng.getrandbits(_NUMBER_BITS - 1), late))) for settings in jobs
                ]
        return found

    def random_jobs(self, config: CduConfig, rng: Random, blocks: int) -> Sequence[_Job]:
        """Return jobs of all modes with random sizes."""
        jobs = []
        while blocks > 0:
            size = rng.randint(1, blocks)
            mode = rng.choice(block_modes(config))
            short = 0 if mode.has_zvc or mode.in_tiles else rng.randrange(BLOCK_SIDE)
            jobs.append((mode, random_settings(rng, mode), BLOCK_SIDE * size - short, 0))
            blocks -= size
        return jobs

    def steady_jobs(self, config: CduConfig, rng: Random, blocks: int) -> Mapping[str, Sequence[_Job]]:
        """Return all modes one after the other."""
        modes = block_modes(config)
        size = BLOCK_SIDE * max(blocks // len(modes), 1)
        return {"all_modes": [(mode, random_settings(rng, mode), size, 0) for mode in modes]}

    def defined(self, stream: str, port: Mapping[str, Any], received: list[int]) -> list[int]:
        """Return zeros for meaningless ranges, that is in all rows but the first one of a block that has a range."""
        result, begins = [], True
        for word in received:
            value = unpack(dict(port), word)
            if "range" in value and not (begins and value["tag"]["heads"]):
                value["range"] = _NOTHING
            begins = bool(value["ends"])
            result.append(pack(dict(port), value))
        return result


def _only(port: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that the port has fields for."""
    return {entry["name"]: values[entry["name"]] for entry in port["fields"]}


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


AFFINE_QUANTIZER = _AffineQuantizer()
