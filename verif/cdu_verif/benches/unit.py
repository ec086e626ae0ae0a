"""Driving whole jobs through a simulated Compressor and Decompressor, by their own streams."""

from __future__ import annotations

from collections.abc import Sequence

from actcodec.backends.job import Job
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.port_fields import pack
from torch import Tensor

from cdu_verif.content.payloads import BANKS, counted_words, descriptor, float_beats, float_bytes, scale_words
from cdu_verif.simulation.bench import Bench


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
        await self.bench.run(done, patience * work + 3000, f"{len(jobs)} jobs")
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
