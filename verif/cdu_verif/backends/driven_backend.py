"""A simulated unit behind the reference driver as a backend of codecs, within a simulation."""

from __future__ import annotations

from actcodec.backends.job import Job
from cdu_driver import Driver
from cdu_spec.register_types import Channel
from cocotb.task import resume
from torch import Tensor

from cdu_verif.backends.simulated_backend import SimulatedBackend
from cdu_verif.benches.array_bench import ArrayBench, queue_of
from cdu_verif.content.payloads import float_beats, float_bytes
from cdu_verif.simulation.driver_jobs import driver_job


def driven_backend(bench: ArrayBench, driver: Driver) -> tuple[SimulatedBackend, dict[Channel, int]]:
    """The backend, for functions that cocotb bridges, and the cycles of its jobs so far by direction.

    AssertionError for an infinite value or NaN in a job.
    """
    used = dict.fromkeys(Channel, 0)

    async def result(channel: Channel, job: Job, data: bytes) -> bytes:
        begin = bench.watches.cycle
        (done,) = await queue_of(driver, channel).run([driver_job(job, data)])
        used[channel] += bench.watches.cycle - begin
        assert not done.nonfinite, f"{job.mode.label}: an infinite value or NaN"
        return bytes(done.data)

    @resume
    async def compress(job: Job, beats: Tensor) -> bytes:
        return await result(Channel.COMPRESS, job, float_bytes(beats))

    @resume
    async def decompress(job: Job, payload: bytes) -> Tensor:
        return float_beats(await result(Channel.DECOMPRESS, job, payload), job)

    return SimulatedBackend(compress, decompress), used
