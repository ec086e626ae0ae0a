"""Backend of the compiled RTL of a whole unit behind its DMA engine: every tensor goes through memory."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from actcodec.backends.job import DTYPES, Job
from cdu_driver import JobLostError
from cdu_spec.bitstream import BitstreamError
from cdu_spec.config import CduConfig
from cdu_spec.dma import MEMORY_LATENCY
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Dtype
from cdu_spec.register_types import Channel
from cdu_tools.errors import UserError
from torch import Tensor

from cdu_verif.backends.compiled.dma_worker import DmaWorker, Took
from cdu_verif.backends.compiled.suited import suited
from cdu_verif.backends.memory_backend import MemoryBackend
from cdu_verif.backends.unit_backend import check_payload


class DmaBackend(MemoryBackend):
    """Compute jobs with a compiled unit whose DMA engine reads and writes tensors, scales and payloads in a simulated memory.

    Only registers of the engine are written: a job is a descriptor, and its result a record. A unit is compiled when the first
    job needs it, and kept in the user's cache. Several threads may use one backend.

    Parameters
    ----------
    config
        Configuration of the unit, with ``dma_bits``.
    latency
        Additional cycles that memory takes to answer; 0 or more.
    every_format
        Whether jobs of every number format are taken, with a unit for each, or only those of ``config.value_format``.

    Raises UnsuitedUnitError for a job that the unit was not built for.
    """

    def __init__(self, config: CduConfig, latency: int = MEMORY_LATENCY, *, every_format: bool = False) -> None:
        if not config.dma_bits:
            raise UserError(f"unit {config.unit_name} has no DMA engine: use a configuration with dma_bits")
        if latency < 0:
            raise UserError(f"a latency of {latency} cycles is not allowed: use 0 or more")
        self.config, self.latency, self.every_format = config, latency, every_format
        self._idle: dict[Dtype, queue.SimpleQueue[DmaWorker]] = {dtype: queue.SimpleQueue() for dtype in Dtype}
        self.took: list[Took] = []  #: cost of every job, in the order in which they were done

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`Backend`."""
        values = x.detach().cpu().contiguous().view(torch.uint8).flatten().numpy()
        with self._worker(job, Channel.COMPRESS) as worker:
            payload = worker.compress(job, values, tuple(x.shape))
        return torch.from_numpy(payload).to(x.device)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`Backend`."""
        check_payload(job, payload)
        try:
            with self._worker(job, Channel.DECOMPRESS) as worker:
                values = worker.decompress(job, payload.detach().cpu().contiguous().numpy(), tuple(shape))
        except JobLostError as error:
            raise BitstreamError(f"corrupted stream: {error}") from None
        return torch.from_numpy(values).view(DTYPES[job.dtype]).view(tuple(shape)).to(payload.device)

    @contextmanager
    def _worker(self, job: Job, channel: Channel) -> Iterator[DmaWorker]:
        """Provide a unit for a job of one direction; a unit that has failed is not used again."""
        config = suited(self.config, job, channel, self.every_format)
        idle = self._idle[config.dtype]
        try:
            worker = idle.get_nowait()
        except queue.Empty:
            worker = DmaWorker(config, self.latency, self.took.append)
        yield worker
        idle.put(worker)
