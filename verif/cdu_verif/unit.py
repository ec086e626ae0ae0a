"""Driving whole jobs through a simulated Compressor and Decompressor: the software driver of a unit, in a test bench."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from actcodec.codecs.job import DTYPES, Job
from cdu_spec.bitstream import Mode
from cdu_spec.geometry import BLOCK_VALUES, LANES
from torch import Tensor

from cdu_verif.bench import Bench
from cdu_verif.cases.payload import payload_words
from cdu_verif.cases.sfpr import bit_patterns
from cdu_verif.ports import unpack_rows


def descriptor(job: Job) -> dict[str, Any]:
    """A codec's job as the fields of the unit's ``job`` port."""
    return {
        "mode": int(job.mode),
        "beats": job.beats,
        "row_beats": job.row_beats,
        "channel_rows": job.channel_rows,
        "shifts": list(job.shifts) or [0] * BLOCK_VALUES,
    }


def float_words(values: Tensor) -> list[int]:
    """Beats (B, 8) of floating-point values as the bits of the uncompressed port, lane 0 lowest."""
    size = values.element_size() * LANES
    raw = bytes(values.contiguous().view(torch.uint8).numpy().data)
    return [int.from_bytes(raw[begin : begin + size], "little") for begin in range(0, len(raw), size)]


def float_beats(words: list[int], job: Job) -> Tensor:
    """The inverse of :func:`float_words`."""
    size = job.dtype.bits // 8 * LANES
    raw = bytearray(b"".join(word.to_bytes(size, "little") for word in words))
    return torch.frombuffer(raw, dtype=DTYPES[job.dtype]).view(-1, LANES)


class _Half:
    """The ports of one half of a unit; ``prefix`` is ``compress__`` or ``decompress__`` in a whole unit, empty alone."""

    def __init__(self, bench: Bench, prefix: str) -> None:
        self.bench, self.prefix = bench, prefix
        self._job, self._scales, self.i = (bench.sources[prefix + name] for name in ("job", "scales", "i"))
        self.o = bench.sinks[prefix + "o"]

    def _describe(self, job: Job) -> None:
        from cdu.manifest import pack

        self._job.send([pack(self.bench.ports[f"{self.prefix}job__payload"], descriptor(job))])
        if job.mode is not Mode.BRC:
            self._scales.send(bit_patterns(job.scales).tolist())

    def sources_done(self) -> bool:
        """Whether everything that was sent has been taken."""
        return not (self._job.queue or self._scales.queue or self.i.queue)

    def flag(self, name: str) -> int:
        """A status output."""
        return self.bench.get(self.prefix + name)


class CompressorDriver(_Half):
    """Jobs of a Compressor: :meth:`send` any number of them, then :meth:`collect` their payloads."""

    def __init__(self, bench: Bench, prefix: str = "") -> None:
        super().__init__(bench, prefix)
        self._jobs: list[Job] = []
        self._last_bit = next(
            field["offset"] for field in bench.ports[f"{prefix}o__payload"]["fields"] if field["name"] == "last"
        )

    def send(self, job: Job, beats: Tensor) -> None:
        """Queue a job and its beats (job.beats, 8)."""
        self._describe(job)
        self.i.send(float_words(beats))
        self._jobs.append(job)

    async def collect(self, patience: int = 40) -> list[bytes]:
        """Run until all jobs have left; their payloads. ``patience``: cycles allowed per beat."""
        jobs, self._jobs = self._jobs, []
        ended = 0
        seen = 0

        def done() -> bool:
            nonlocal ended, seen
            while seen < len(self.o.received):
                ended += self.o.received[seen] >> self._last_bit & 1
                seen += 1
            return ended >= len(jobs) and self.sources_done()

        await self.bench.run(done, patience * sum(job.beats for job in jobs) + 2000)
        words, payloads = unpack_rows(self.bench.ports[f"{self.prefix}o__payload"], self.o.received), []
        self.o.received.clear()
        payload = bytearray()
        for data, count, last in zip(words["data"], words["count"][:, 0], words["last"][:, 0], strict=True):
            assert 1 <= count <= len(data), f"a word with {count} bytes"
            assert last or count == len(data), f"a word of {count} bytes in the middle of a payload"
            payload += bytes(data[:count])
            if last:
                payloads.append(bytes(payload))
                payload.clear()
        assert not payload, "bytes after the last word"
        return payloads


class DecompressorDriver(_Half):
    """Jobs of a Decompressor: :meth:`send` any number of them, then :meth:`collect` their beats."""

    def __init__(self, bench: Bench, prefix: str = "") -> None:
        super().__init__(bench, prefix)
        self._jobs: list[Job] = []

    def send(self, job: Job, payload: bytes) -> None:
        """Queue a job and its payload."""
        self._describe(job)
        ports = {"i__payload": self.bench.ports[f"{self.prefix}i__payload"]}
        self.i.send(payload_words(ports, "i", payload))
        self._jobs.append(job)

    async def collect(self, patience: int = 40) -> list[Tensor]:
        """Run until all jobs have left; their beats (job.beats, 8). ``patience``: cycles allowed per beat."""
        jobs, self._jobs = self._jobs, []
        wanted = sum(job.beats for job in jobs)
        work = wanted + len(self.i.queue)
        await self.bench.run(lambda: len(self.o.received) >= wanted and self.sources_done(), patience * work + 2000)
        received, begin = list(self.o.received), 0
        self.o.received.clear()
        results = []
        for job in jobs:
            results.append(float_beats(received[begin : begin + job.beats], job))
            begin += job.beats
        assert begin == len(received), f"{len(received)} beats, not {begin}"
        return results


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Whether two floating-point tensors of one shape and dtype are equal bit for bit."""
    return left.shape == right.shape and bool(np.array_equal(bit_patterns(left).numpy(), bit_patterns(right).numpy()))
