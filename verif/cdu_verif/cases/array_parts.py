"""Cases of the parts of an array that have a stream per lane: distributor, gatherer, collector, splitter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from cdu.delivery.blocks import several
from cdu.delivery.manifest import pack
from cdu_spec.bitstream import MAX_BLOCK_BYTES
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES

from cdu_verif.cases.block_streams import (
    Block,
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
)
from cdu_verif.cases.case import Ports
from cdu_verif.simulation.ports import unpack_rows
from cdu_verif.stimulus.payloads import quantizer

#: Cycles that a part may take in the beginning until its lanes have found their turns.
_START = 12


@dataclass(frozen=True)
class PartCase:
    """Some jobs of a part.

    Parameters
    ----------
    name
        Says what is special.
    inputs, expected
        Packed payloads by stream.
    blocks
        Number of blocks; the next case begins with the lane behind the last one's.
    events
        Pulses of the fields of the port ``events``; no others may occur.
    cycles
        Cycles that a full-rate run may take, from the first transfer to the last of the output streams.
    """

    name: str
    inputs: Mapping[str, list[int]]
    expected: Mapping[str, list[int]]
    blocks: int
    cycles: int
    events: Mapping[str, int] = field(default_factory=dict)


class PartCases:
    """Jobs by name, which the subclasses turn into the streams of a part.

    ``first`` is always the lane that the first block goes to.
    """

    def case(
        self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[list[Block]], first: int
    ) -> PartCase:
        """The streams of some jobs."""
        raise NotImplementedError

    def built(self, config: CduConfig) -> CduConfig:
        """The configuration that the part of a name is built for."""
        return config

    def corners(self, config: CduConfig, rng: Random) -> Mapping[str, Sequence[list[Block]]]:
        """Jobs of every length up to 9 blocks, of a single block, of the longest and the shortest blocks."""
        modes = block_modes(config)
        found = {
            **{f"{blocks}_blocks": [random_job(rng, blocks, modes)] for blocks in range(1, 10)},
            "jobs_of_one_block": [random_job(rng, 1, modes) for _ in range(40)],
        }
        for mode in modes:
            if mode.has_zvc:
                found[f"incompressible_{mode.label}"] = [dense_job(rng, blocks, mode) for blocks in (5, 1, 11)]
                found[f"all_zero_{mode.label}"] = [empty_job(blocks, mode) for blocks in (5, 1, 11)]
            if mode.is_affine:
                found[mode.label] = [random_job(rng, blocks, [mode]) for blocks in (*range(1, 6), 9, 1, 4)]
        return found

    def random(self, config: CduConfig, rng: Random, blocks: int) -> Sequence[list[Block]]:
        """Jobs of random modes and content."""
        jobs: list[list[Block]] = []
        while blocks > 0:
            jobs.append(random_job(rng, rng.randint(1, blocks), block_modes(config)))
            blocks -= len(jobs[-1])
        return jobs

    def steady(self, config: CduConfig, rng: Random, blocks: int) -> Mapping[str, Sequence[list[Block]]]:
        """Blocks of mixed lengths, the longest, the shortest, those of every affine mode; three jobs each."""
        third, modes = blocks // 3, block_modes(config)
        found = {"mixed": [whole_job(rng, third, modes) for _ in range(3)]}
        for mode in modes:
            if mode.has_zvc:
                found[f"incompressible_{mode.label}"] = [dense_job(rng, third, mode) for _ in range(3)]
                found[f"all_zero_{mode.label}"] = [empty_job(third, mode) for _ in range(3)]
            elif mode.is_affine:
                found[mode.label] = [whole_job(rng, third, [mode]) for _ in range(3)]
        return found

    def defined(self, name: str, port: Mapping[str, Any], received: list[int]) -> list[int]:
        """Payloads that the stream ``name`` gave, with zeros for all that is undefined; nothing is by default."""
        return received

    def broken(self, config: CduConfig, ports: Ports, rng: Random, first: int) -> list[PartCase]:
        """Cases in which something is wrong with a job, one after the other; none by default."""
        return []


def _all(jobs: Sequence[list[Block]]) -> list[Block]:
    return [block for job in jobs for block in job]


def _row_cycles(config: CduConfig, blocks: int) -> int:
    """Cycles of blocks of 8 rows when every lane passes a row per cycle, or the words P rows."""
    return _START + max(BLOCK_SIDE * -(-blocks // config.cdus), BLOCK_SIDE // config.port_beats * blocks)


class _Rows(PartCases):
    def built(self, config: CduConfig) -> CduConfig:
        """At least two CDUs."""
        return several(config)


class _Distributor(_Rows):
    def case(
        self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[list[Block]], first: int
    ) -> PartCase:
        """Words of blocks in, and a seed per job; rows per lane out."""
        blocks = _all(jobs)
        numbers = {id(block): number for job in jobs for number, block in enumerate(job)}
        lanes = enumerate(dealt(blocks, config.cdus, first))
        expected = {f"o__{lane}": block_rows(ports, f"o__{lane}", part, numbers) for lane, part in lanes}
        cycles = _row_cycles(config, len(blocks))
        inputs = {"i": block_words(ports, "i", blocks, rng)}
        if "seeds__payload" in ports:
            settings = [job[0].tag.settings for job in jobs]
            inputs["seeds"] = [found.seed if found else 0 for found in settings]
        return PartCase(name, inputs, expected, len(blocks), cycles)


class _Gatherer(_Rows):
    def case(
        self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[list[Block]], first: int
    ) -> PartCase:
        """Rows per lane in, words of blocks out."""
        blocks = _all(jobs)
        lanes = enumerate(dealt(blocks, config.cdus, first))
        inputs = {f"i__{lane}": block_rows(ports, f"i__{lane}", part) for lane, part in lanes}
        cycles = _row_cycles(config, len(blocks))
        return PartCase(name, inputs, {"o": block_words(ports, "o", blocks)}, len(blocks), cycles)

    def defined(self, name: str, port: Mapping[str, Any], received: list[int]) -> list[int]:
        """Zeros for the rows behind ``count``."""
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


class _Collector(PartCases):
    def case(
        self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[list[Block]], first: int
    ) -> PartCase:
        """Slices per lane in, words out. A slice passes in every cycle; the end of a job may take one more."""
        blocks = _all(jobs)
        lanes = enumerate(dealt(blocks, config.cdus, first))
        inputs = {f"i__{lane}": slices(ports, f"i__{lane}", part) for lane, part in lanes}
        expected = {"o": [word for job in jobs for word in payload_words(ports, "o", payload(job))]}
        return PartCase(name, inputs, expected, len(blocks), sum(map(len, inputs.values())) + len(jobs))


class _Splitter(PartCases):
    def case(
        self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[list[Block]], first: int
    ) -> PartCase:
        """Words in, slices per lane out. A block may take no more than its share of 8 cycles, or one per slice."""
        blocks = _all(jobs)
        cut = random_words if name == "random" else lambda ports, stream, sent, rng: payload_words(ports, stream, sent)
        words = [word for job in jobs for word in cut(ports, "i", payload(job), rng)]
        share = max(BLOCK_SIDE // config.cdus, -(-MAX_BLOCK_BYTES // config.slice_bytes))
        return self._streams(config, ports, name, blocks, blocks, words, first, share * len(blocks))

    def broken(self, config: CduConfig, ports: Ports, rng: Random, first: int) -> list[PartCase]:
        """Payloads that end too early (zeros take the place of what is missing) or too late, with good ones in between."""
        cases = []
        for number in range(24):
            blocks = random_job(rng, rng.choice((1, 2, 9)), block_modes(config))
            whole = payload(blocks)
            if number % 2:
                sent, seen = whole + rng.randbytes(rng.choice((1, config.packed_bytes, 3 * config.packed_bytes))), blocks
            else:
                sent = whole[: rng.choice((0, len(whole) - 1, rng.randrange(len(whole))))]
                packed = decoded_with_zeros(blocks, sent)
                seen = [replace(block, packed=content) for block, content in zip(blocks, packed, strict=True)]
            words = random_words(ports, "i", sent, rng)
            event = "late_last" if number % 2 else "early_last"
            case = self._streams(config, ports, f"{event}_{number}", blocks, seen, words, first, 0)
            cases.append(replace(case, events={event: 1}))
            first = (first + len(blocks)) % config.cdus
            good = random_job(rng, rng.choice((1, 4)), block_modes(config))
            cases.append(self.case(config, ports, rng, "random", [good], first))
            first = (first + len(good)) % config.cdus
        return cases

    def _streams(
        self,
        config: CduConfig,
        ports: Ports,
        name: str,
        sent: Sequence[Block],
        seen: Sequence[Block],
        words: list[int],
        first: int,
        cycles: int,
    ) -> PartCase:
        """``sent`` says what the jobs are, ``seen`` what comes out of their words."""
        jobs, beats = [], 0
        for block in sent:
            beats += len(block.rows)
            if block.tag.last:
                counts = {"beats": beats, "row_beats": 1, "channel_rows": 1}
                settings = block.tag.settings
                fields = {"mode": int(block.tag.mode), "bank": block.tag.bank, **counts, "quantizer": quantizer(settings)}
                jobs.append(pack(dict(ports["job__payload"]), {**fields, "seed": settings.seed if settings else 0}))
                beats = 0
        lanes = enumerate(dealt(seen, config.cdus, first))
        expected = {f"o__{lane}": slices(ports, f"o__{lane}", part) for lane, part in lanes}
        return PartCase(name, {"job": jobs, "i": words}, expected, len(seen), cycles)


DISTRIBUTOR, GATHERER, COLLECTOR, SPLITTER = _Distributor(), _Gatherer(), _Collector(), _Splitter()
