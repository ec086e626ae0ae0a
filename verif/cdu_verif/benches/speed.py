"""Time that given tensors take through a simulated array, for comparison with the compiled one (benchmarks/rtl_speed.py)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch
from actcodec.backends.job import Job
from actcodec.codecs import codec
from cdu_spec.register_types import Channel
from cocotb.task import bridge, resume
from torch import Tensor

from cdu_verif.backends.simulated_backend import SimulatedBackend
from cdu_verif.benches.array_bench import ArrayBench, queue_of
from cdu_verif.content.payloads import float_beats, float_bytes
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.driver_jobs import driver_job

#: Environment variable with a file written by ``torch.save``: pairs of a codec's name and a tensor.
TENSORS = "CDU_SPEED_TENSORS"


@bench_test(ArrayBench)
async def speed(bench: ArrayBench) -> None:
    """Compress and decompress every tensor; results equal the golden model's."""
    driver = await bench.open()

    async def result(channel: Channel, job: Job, data: bytes) -> bytes:
        (done,) = await queue_of(driver, channel).run([driver_job(job, data)])
        return bytes(done.data)

    @resume
    async def compress(job: Job, beats: Tensor) -> bytes:
        return await result(Channel.COMPRESS, job, float_bytes(beats))

    @resume
    async def decompress(job: Job, payload: bytes) -> Tensor:
        return float_beats(await result(Channel.DECOMPRESS, job, payload), job)

    backend = SimulatedBackend(compress, decompress)

    @bridge
    def work() -> None:
        torch.set_num_threads(1)
        for name, x in torch.load(Path(os.environ[TENSORS])):
            through = codec(name, backend=backend)
            first = bench.watches.cycle
            begin, used = time.perf_counter(), time.process_time()
            through.decompress(through.compress(x))
            bench.measure(
                codec=name,
                values=x.numel(),
                cycles=bench.watches.cycle - first,
                seconds=time.perf_counter() - begin,
                processor_seconds=time.process_time() - used,
            )
            bench.cases += 1

    await work()
