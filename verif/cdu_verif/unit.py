"""Driving whole jobs through a simulated Compressor and Decompressor, by their own streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from actcodec.codecs.job import DTYPES, Job
from cdu.manifest import pack
from cdu_spec.affine import CODE_BITS, AffineSettings
from cdu_spec.geometry import BLOCK_VALUES, LANES
from torch import Tensor

from cdu_verif.bench import Bench
from cdu_verif.cases.sfpr import bit_patterns

#: Shift tables that a unit holds.
BANKS = 2


def descriptor(job: Job, bank: int = 0) -> dict[str, Any]:
    """A codec's job as the fields of the unit's ``job`` port."""
    return {
        "mode": int(job.mode),
        "bank": bank,
        "beats": job.beats,
        "row_beats": job.row_beats,
        "channel_rows": job.channel_rows,
        "quantizer": quantizer(job.settings),
        "seed": job.settings.seed if job.settings else 0,
    }


def quantizer(settings: AffineSettings | None) -> dict[str, int]:
    """Settings as a :class:`cdu.words.Quantizer`."""
    if settings is None:
        return dict.fromkeys(("bits_log2", "step_log2", "stochastic", "block_range", "statistics"), 0)
    return {
        "bits_log2": CODE_BITS.index(settings.bits),
        "step_log2": settings.step_log2,
        "stochastic": int(settings.stochastic),
        "block_range": int(settings.block_range),
        "statistics": int(settings.statistics),
    }


def float_bytes(values: Tensor) -> bytes:
    """Floating-point values as bytes, little endian, in memory order."""
    return bytes(values.contiguous().view(torch.uint8).numpy().data)


def float_beats(raw: bytes, job: Job) -> Tensor:
    """The inverse of :func:`float_bytes` for the values of a job, (beats, 8)."""
    return torch.frombuffer(bytearray(raw), dtype=DTYPES[job.dtype]).view(-1, LANES)


def counted_words(port: Mapping[str, Any], raw: bytes, unit_bytes: int = 1) -> list[int]:
    """Bytes as the payloads of a stream of words with ``count`` and ``last``; the count is one of units of ``unit_bytes``."""
    data, count, last = port["fields"]
    size = data["width"] * data["count"] // 8
    words = []
    for begin in range(0, len(raw), size):
        part = raw[begin : begin + size]
        ends = begin + size >= len(raw)
        units = -(-len(part) // unit_bytes)
        words.append(int.from_bytes(part, "little") | units << count["offset"] | ends << last["offset"])
    return words


def scale_words(port: Mapping[str, Any], job: Job) -> list[int]:
    """The scales of a job, and its offsets if it has any, as the payloads of a stream of :class:`cdu.words.Scale`."""
    patterns = bit_patterns(job.scales).tolist()
    offsets = job.offsets.tolist() if job.mode.has_offsets else [0] * len(patterns)
    return [
        pack(dict(port), {"value": bits, "offset": offset, "last": index == len(patterns) - 1})
        for index, (bits, offset) in enumerate(zip(patterns, offsets, strict=True))
    ]


class _Half:
    """The ports of a Compressor or a Decompressor."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._job, self._scales, self.i = (bench.sources[name] for name in ("job", "scales", "i"))
        self.o = bench.sinks["o"]
        self._beat_bytes = bench.config.beat_bits // 8
        self._tables: list[tuple[int, ...]] = []
        self._jobs: list[Job] = []
        self._events = {field["name"]: field["offset"] for field in bench.ports["events"]["fields"]}
        self.seen = dict.fromkeys(self._events, 0)  #: how often each event came

    def _describe(self, job: Job) -> None:
        bank = 0
        if job.mode.has_dct:
            if job.shifts not in self._tables:
                self._tables.append(job.shifts)
                assert len(self._tables) <= BANKS, "jobs under way at the same time have at most two shift tables"
                empty = (0,) * BLOCK_VALUES
                self.bench.set("shifts", [*(self._tables[0]), *(self._tables[1] if len(self._tables) > 1 else empty)])
            bank = self._tables.index(job.shifts)
        self._job.send([pack(self.bench.ports["job__payload"], descriptor(job, bank))])
        if job.mode.has_scales:
            self._scales.send(scale_words(self.bench.ports["scales__payload"], job))
        self._jobs.append(job)

    async def _packets(self, patience: int, unit_bytes: int) -> list[bytes]:
        """Run until every job has given its last word; the bytes of each."""
        jobs, self._jobs = self._jobs, []
        self._tables = []
        data, count, last = self.bench.ports["o__payload"]["fields"]
        size = data["width"] * data["count"] // 8
        ended = seen = 0

        def done() -> bool:
            nonlocal ended, seen
            bits = self.bench.get("events")
            for name, offset in self._events.items():
                self.seen[name] += bits >> offset & 1
            while seen < len(self.o.received):
                ended += self.o.received[seen] >> last["offset"] & 1
                seen += 1
            return ended >= len(jobs) and not (self._job.queue or self._scales.queue or self.i.queue)

        work = sum(job.beats for job in jobs) + len(self.i.queue)
        await self.bench.run(done, patience * work + 3000)
        packets, packet = [], bytearray()
        for word in self.o.received:
            units = word >> count["offset"] & ((1 << count["width"]) - 1)
            ends = word >> last["offset"] & 1
            content = (word & ((1 << 8 * size) - 1)).to_bytes(size, "little")
            filled = units * unit_bytes
            assert 0 < filled <= size, f"a word that counts {units}"
            assert ends or filled == size, f"a word that counts {units} in the middle of a job"
            assert not any(content[filled:]), "something behind the end of a word"
            packet += content[:filled]
            if ends:
                packets.append(bytes(packet))
                packet.clear()
        assert not packet, "words behind the last job"
        assert len(packets) == len(jobs), f"{len(packets)} jobs came out, not {len(jobs)}"
        self.o.received.clear()
        return packets


class CompressorDriver(_Half):
    """Jobs of a Compressor: :meth:`send` any number of them, then :meth:`collect` their payloads."""

    def send(self, job: Job, beats: Tensor) -> None:
        """Queue a job and its beats (job.beats, 8)."""
        self._describe(job)
        self.i.send(counted_words(self.bench.ports["i__payload"], float_bytes(beats), self._beat_bytes))

    async def collect(self, patience: int = 40) -> list[bytes]:
        """Run until all jobs have left; their payloads. ``patience``: cycles allowed per beat."""
        return await self._packets(patience, 1)


class DecompressorDriver(_Half):
    """Jobs of a Decompressor: :meth:`send` any number of them, then :meth:`collect` their beats."""

    def send(self, job: Job, payload: bytes) -> None:
        """Queue a job and its payload."""
        self._describe(job)
        self.i.send(counted_words(self.bench.ports["i__payload"], payload))

    async def collect(self, patience: int = 40) -> list[Tensor]:
        """Run until all jobs have left; their beats (job.beats, 8). ``patience``: cycles allowed per beat."""
        jobs: Sequence[Job] = list(self._jobs)
        packets = await self._packets(patience, self._beat_bytes)
        return [float_beats(packet, job) for packet, job in zip(packets, jobs, strict=True)]


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Whether two floating-point tensors of one shape and dtype are equal bit for bit."""
    return left.shape == right.shape and bool(np.array_equal(bit_patterns(left).numpy(), bit_patterns(right).numpy()))
