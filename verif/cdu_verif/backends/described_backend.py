"""Backend of a simulated unit behind its DMA engine, within a simulation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from actcodec.backends.job import DTYPES, Job
from actcodec.backends.torch_backend import TorchBackend
from cdu_spec.matrix_view import MatrixView
from cdu_spec.register_types import Channel
from cocotb.task import resume
from torch import Tensor

from cdu_verif.backends.memory_backend import MemoryBackend
from cdu_verif.benches.dma_bench import DmaBench, DmaJob, bare_exchange


class DescribedBackend(MemoryBackend):
    """Run every job as a descriptor through the ring of a bench, which compares memory with the golden model.

    Its methods are called from functions that cocotb bridges.

    Parameters
    ----------
    bench
        Bench of the unit; one job of each direction at a time.
    """

    def __init__(self, bench: DmaBench) -> None:
        self._bench, self._golden = bench, TorchBackend()
        self.jobs = dict.fromkeys(Channel, 0)
        self.cycles = dict.fromkeys(Channel, 0)  #: from the records
        self.values = self.payload_bytes = 0  #: numbers of values compressed, and of bytes that they became
        self._play = resume(self._played)

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`Backend`. AssertionError for a payload that differs from the golden one."""
        golden = self._golden.compress_tensor(x, view, job)
        self._bench.empty()
        described = self._bench.compression(x, bare_exchange(job, golden))
        payload = self._play(Channel.COMPRESS, described, golden.numel())
        self.values += x.numel()
        self.payload_bytes += len(payload)
        return torch.frombuffer(payload, dtype=torch.uint8)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`Backend`. AssertionError for values that differ from the golden ones."""
        golden = self._golden.decompress_tensor(payload, view, job, shape)
        self._bench.empty()
        described = self._bench.restoration(golden, bare_exchange(job, payload))
        values = self._play(Channel.DECOMPRESS, described, golden.numel() * golden.element_size())
        return torch.frombuffer(values, dtype=DTYPES[job.dtype]).view(tuple(shape))

    async def _played(self, channel: Channel, job: DmaJob, size: int) -> bytearray:
        """Run a job and return the bytes that it wrote."""
        (record,) = await self._bench.play(channel, [job], log2=0)
        self.jobs[channel] += 1
        self.cycles[channel] += record.cycles
        return bytearray(self._bench.memory.get(job.place, size))
