"""Cases of the blocks that deal blocks out to lanes, code them there and collect them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import torch
from cdu.delivery.blocks import several, with_gmc
from cdu_spec.coding import seed_of
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES
from cdu_spec.modes import Mode
from cdu_spec.port_fields import pack
from cdu_spec.sfpr import VALUE_MIN

from cdu_verif.cases import gmc, mx
from cdu_verif.cases.block_streams import (
    StreamBlock,
    block_modes,
    block_rows,
    block_words,
    dealt,
    decoded_with_zeros,
    dense_job,
    empty_job,
    payload,
    payload_words,
    random_job,
    random_words,
    slices,
    whole_job,
    with_integers,
)
from cdu_verif.cases.case import Case
from cdu_verif.cases.jobs import JobCases
from cdu_verif.simulation.ports import Ports, unpack_rows

#: Cycles that a part may take at the beginning until its lanes have found their turns.
_START = 12
#: Blocks in which classes follow each other, for each one over which the rate is measured: all of them in a bench.
_PATHS = 5


class _Parts(JobCases[list[StreamBlock]]):
    """Jobs as lists of blocks."""

    #: Whether jobs of mode mx also pass.
    has_mx = False

    def drawn(self, config: CduConfig, rng: Random, blocks: int) -> list[StreamBlock]:
        """Return a job of any mode that passes, or of GMC where it is built in."""
        if self.has_mx and config.has_mx and rng.randrange(2):
            return mx.coded_job(config, rng, blocks)
        return _drawn_job(config, rng, blocks)

    def corner_jobs(self, config: CduConfig, rng: Random) -> Mapping[str, Sequence[list[StreamBlock]]]:
        """Return jobs of every length up to 9 blocks, of a single block, of the longest and the shortest blocks."""
        found = {
            **{f"{blocks}_blocks": [self.drawn(config, rng, blocks)] for blocks in range(1, 10)},
            "jobs_of_one_block": [self.drawn(config, rng, 1) for _ in range(40)],
        }
        if config.has_gmc:
            found["any_bytes_of_gmc"] = [gmc.any_bytes(rng, 300)]
        for mode in block_modes(config):
            if mode.has_zvc:
                found[f"incompressible_{mode.label}"] = [dense_job(rng, blocks, mode) for blocks in (5, 1, 11)]
                found[f"all_zero_{mode.label}"] = [empty_job(blocks, mode) for blocks in (5, 1, 11)]
            if mode.is_affine:
                found[mode.label] = [random_job(rng, blocks, [mode]) for blocks in (*range(1, 6), 9, 1, 4)]
        return found

    def random_jobs(self, config: CduConfig, rng: Random, blocks: int) -> Sequence[list[StreamBlock]]:
        """Return jobs of random modes and content."""
        jobs: list[list[StreamBlock]] = []
        while blocks > 0:
            jobs.append(self.drawn(config, rng, rng.randint(1, blocks)))
            blocks -= len(jobs[-1])
        return jobs

    def steady_jobs(self, config: CduConfig, rng: Random, blocks: int) -> Mapping[str, Sequence[list[StreamBlock]]]:
        """Return blocks of mixed lengths, the longest, the shortest, and those of every affine mode; three jobs each."""
        third, modes = blocks // 3, block_modes(config)
        found = {"mixed": [whole_job(rng, third, modes) for _ in range(3)]} if modes else {}
        if self.has_mx and config.has_mx:
            found["mx"] = [mx.coded_job(config, rng, BLOCK_SIDE * third) for _ in range(3)]
        if config.has_gmc:
            found["gmc"] = [gmc.random_job(rng, third) for _ in range(3)]
            found["longest_of_gmc"] = [gmc.job(torch.full((third, BLOCK_SIDE, LANES), VALUE_MIN)) for _ in range(3)]
        for mode in modes:
            if mode.has_zvc:
                found[f"incompressible_{mode.label}"] = [dense_job(rng, third, mode) for _ in range(3)]
                found[f"all_zero_{mode.label}"] = [empty_job(third, mode) for _ in range(3)]
            elif mode.is_affine:
                found[mode.label] = [whole_job(rng, third, [mode]) for _ in range(3)]
        return found


def _drawn_job(config: CduConfig, rng: Random, blocks: int) -> list[StreamBlock]:
    """Return a job of one of the modes, or of GMC where it is built in."""
    modes = block_modes(config)
    if config.has_gmc and (not modes or rng.randrange(2)):
        return gmc.random_job(rng, blocks)
    return random_job(rng, blocks, modes)


def _all(jobs: Sequence[list[StreamBlock]]) -> list[StreamBlock]:
    return [block for job in jobs for block in job]


def _ways(config: CduConfig, ports: Ports, stream: str, blocks: Sequence[StreamBlock]) -> dict[str, list[int]]:
    """Return slices of blocks by stream: those of lanes in turn, and those of mode mx past the lanes."""
    lanes = enumerate(dealt([block for block in blocks if block.tag.mode is not Mode.MX], config.cdus))
    ways = {f"{stream}__{lane}": slices(ports, f"{stream}__{lane}", part) for lane, part in lanes}
    if config.has_mx:
        ways["mx"] = slices(ports, "mx", [block for block in blocks if block.tag.mode is Mode.MX])
    return ways


def _turns(blocks: Sequence[StreamBlock]) -> int:
    """Return the number of lanes' turns: one for each block that passes the lanes."""
    return sum(block.tag.mode is not Mode.MX for block in blocks)


def _row_cycles(config: CduConfig, blocks: int) -> int:
    """Return the cycles of blocks of 8 rows if every lane passes a row per cycle, or the words P rows."""
    return _START + max(BLOCK_SIDE * -(-blocks // config.cdus), BLOCK_SIDE // config.port_beats * blocks)


class _Rows(_Parts):
    def built(self, config: CduConfig) -> CduConfig:
        """Return the configuration with at least two CDUs."""
        return several(config)


class _Distributor(_Rows):
    def case(self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[list[StreamBlock]]) -> Case:
        """Return a case with words of blocks and a seed per job in, and rows per lane out."""
        blocks = _all(jobs)
        numbers = {id(block): number for job in jobs for number, block in enumerate(job)}
        lanes = enumerate(dealt(blocks, config.cdus))
        expected = {f"o__{lane}": block_rows(ports, f"o__{lane}", part, numbers) for lane, part in lanes}
        cycles = _row_cycles(config, len(blocks))
        inputs = {"i": block_words(ports, "i", blocks, rng)}
        if "seeds__payload" in ports:
            inputs["seeds"] = [seed_of(job[0].tag.how) for job in jobs]
        return Case(name, inputs, expected, cycles=cycles, turns=len(blocks))


class _Gatherer(_Rows):
    def case(self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[list[StreamBlock]]) -> Case:
        """Return a case with rows per lane in and words of blocks out."""
        blocks = _all(jobs)
        lanes = enumerate(dealt(blocks, config.cdus))
        inputs = {f"i__{lane}": block_rows(ports, f"i__{lane}", part) for lane, part in lanes}
        cycles = _row_cycles(config, len(blocks))
        return Case(name, inputs, {"o": block_words(ports, "o", blocks)}, cycles=cycles, turns=len(blocks))

    def defined(self, stream: str, port: Mapping[str, Any], received: list[int]) -> list[int]:
        """Return zeros for the rows behind ``count``."""
        if not received:
            return received
        field = next(entry for entry in port["fields"] if entry["name"] == "values")
        offset, width, values = field["offset"], field["width"], field["count"]
        counts = unpack_rows(port, received)["count"][:, 0]
        result = []
        for word, count in zip(received, counts.tolist(), strict=True):
            behind = ((1 << (width * values)) - 1) ^ ((1 << (width * LANES * count)) - 1)
            result.append(word & ~(behind << offset))
        return result


class _Collector(_Parts):
    has_mx = True

    def case(self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[list[StreamBlock]]) -> Case:
        """Return a case with slices per lane in, words out: a slice passes per cycle; the end of a job may take one more."""
        blocks = _all(jobs)
        inputs = _ways(config, ports, "i", blocks)
        expected = {"o": [word for job in jobs for word in payload_words(ports, "o", payload(job))]}
        cycles = sum(map(len, inputs.values())) + len(jobs)
        if config.has_mx:
            inputs["turns"] = [int(job[0].tag.mode is Mode.MX) for job in jobs]
        return Case(name, inputs, expected, cycles=cycles, turns=_turns(blocks))


class _Coders(_Parts):
    def __init__(self, decoder: bool) -> None:
        self.decoder = decoder

    def built(self, config: CduConfig) -> CduConfig:
        """Return the configuration with GMC."""
        return with_gmc(config)

    def corner_jobs(self, config: CduConfig, rng: Random) -> Mapping[str, Sequence[list[StreamBlock]]]:
        """Return the jobs of all parts; an encoder does not get the one whose bytes no encoder writes."""
        return {
            name: jobs for name, jobs in super().corner_jobs(config, rng).items() if self.decoder or name != "any_bytes_of_gmc"
        }

    def steady_jobs(self, config: CduConfig, rng: Random, blocks: int) -> Mapping[str, Sequence[list[StreamBlock]]]:
        """Return the jobs of all parts, and a job of GMC in which the classes of a column follow all others."""
        paths = gmc.class_paths(rng)[: _PATHS * blocks]
        return {**super().steady_jobs(config, rng, blocks), "classes_of_gmc": [gmc.job(paths)]}

    def case(self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[list[StreamBlock]]) -> Case:
        """Return a case with slices in and rows out, or reversed."""
        blocks = _all(jobs)
        if self.decoder:
            inputs, expected = {"i": slices(ports, "i", blocks)}, {"o": block_rows(ports, "o", blocks)}
        else:
            inputs, expected = {"i": block_rows(ports, "i", map(with_integers, blocks))}, {"o": slices(ports, "o", blocks)}
        cycles = gmc.MOST_CYCLES * len(blocks) + _START * len(jobs)
        return Case(name, inputs, expected, cycles=cycles, turns=len(blocks))


class _Splitter(_Parts):
    has_mx = True

    def case(self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[list[StreamBlock]]) -> Case:
        """Return a case with words in, slices per lane out; a block takes at most its share of 8 cycles, or one per slice.

        Where a slice is a word of the port, a job takes one more: its second block may begin in the word that comes.
        """
        blocks = _all(jobs)
        cut = random_words if name == "random" else lambda ports, stream, sent, rng: payload_words(ports, stream, sent)
        words = [word for job in jobs for word in cut(ports, "i", payload(job), rng)]
        longest = max(len(block.packed) for block in blocks)
        share = max(BLOCK_SIDE // config.cdus, -(-longest // config.slice_bytes))
        cycles = sum(1 if block.tag.mode is Mode.MX else share for block in blocks)
        if config.slice_bytes == config.packed_bytes:
            cycles += len(jobs) - 1
        return self._streams(config, ports, name, blocks, blocks, words, cycles)

    def broken(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return payloads that end too early (zeros replace the missing bytes) or too late, with good ones in between."""
        cases = []
        for number in range(24):
            blocks = self.drawn(config, rng, rng.choice((1, 2, 9)))
            whole = payload(blocks)
            if number % 2:
                sent, seen = whole + rng.randbytes(rng.choice((1, config.packed_bytes, 3 * config.packed_bytes))), blocks
            else:
                sent = whole[: rng.choice((0, len(whole) - 1, rng.randrange(len(whole))))]
                packed = decoded_with_zeros(blocks, sent)
                seen = [replace(block, packed=content) for block, content in zip(blocks, packed, strict=True)]
            words = random_words(ports, "i", sent, rng)
            event = "late_last" if number % 2 else "early_last"
            case = self._streams(config, ports, f"{event}_{number}", blocks, seen, words)
            cases.append(replace(case, events={event: 1}))
            good = self.drawn(config, rng, rng.choice((1, 4)))
            cases.append(self.case(config, ports, rng, "random", [good]))
        return cases

    def _streams(
        self,
        config: CduConfig,
        ports: Ports,
        name: str,
        sent: Sequence[StreamBlock],
        seen: Sequence[StreamBlock],
        words: list[int],
        cycles: int | None = None,
    ) -> Case:
        """Return the streams of a case: ``sent`` are the jobs, ``seen`` the blocks that come out of their words."""
        if not config.has_affine:  # then no job has a quantizer
            sent, seen = ([replace(one, tag=replace(one.tag, beside=None)) for one in blocks] for blocks in (sent, seen))
        jobs, beats = [], 0
        for block in sent:
            beats += len(block.rows)
            if block.tag.last:
                counts = {"beats": beats, "row_beats": 1, "channel_rows": 1}
                fields = {"mode": int(block.tag.mode), "bank": block.tag.bank, **counts, "how": block.tag.how_fields}
                jobs.append(pack(dict(ports["job__payload"]), {**fields, "seed": seed_of(block.tag.how)}))
                beats = 0
        expected = _ways(config, ports, "o", seen)
        return Case(name, {"job": jobs, "i": words}, expected, cycles=cycles, turns=_turns(seen))


DISTRIBUTOR, GATHERER, COLLECTOR, SPLITTER = _Distributor(), _Gatherer(), _Collector(), _Splitter()
LANE_ENCODER, LANE_DECODER = _Coders(decoder=False), _Coders(decoder=True)
