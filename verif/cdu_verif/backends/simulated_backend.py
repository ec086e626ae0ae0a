"""Backend whose jobs run through a simulated unit; each result is compared with the golden model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from actcodec.backends.job import Job, beats_in, tensor_from_beats
from actcodec.backends.torch_backend import TorchBackend
from cdu_spec.matrix_view import MatrixView
from torch import Tensor

from cdu_verif.backends.unit_backend import UnitBackend
from cdu_verif.content.payloads import same_bits


class SimulatedBackend(UnitBackend):
    """Compute jobs with a simulated unit.

    Parameters
    ----------
    compress_job
        Blocking function from job and beats to payload.
    decompress_job
        Blocking function from job and payload to beats.

    Every payload is compared with the golden payload and every reconstructed tensor bit for bit with the golden tensor;
    AssertionError if they differ.
    """

    def __init__(self, compress_job: Callable[[Job, Tensor], bytes], decompress_job: Callable[[Job, bytes], Tensor]) -> None:
        self._compress_job, self._decompress_job = compress_job, decompress_job
        self._golden = TorchBackend()
        self.compressed, self.decompressed = 0, 0  #: numbers of jobs
        self.payload_bytes, self.values = 0, 0
        self.seconds = 0.0  #: spent in the simulator

    def compress(self, job: Job, beats: Tensor) -> Tensor:
        """Implement :class:`Backend`."""
        begin = time.monotonic()
        payload = self._compress_job(job, beats)
        self.seconds += time.monotonic() - begin
        self.compressed += 1
        self.payload_bytes += len(payload)
        self.values += beats.numel()
        return torch.frombuffer(bytearray(payload), dtype=torch.uint8)

    def _decompress(self, job: Job, payload: Tensor) -> Tensor:
        begin = time.monotonic()
        beats = self._decompress_job(job, bytes(payload.numpy().data))
        self.seconds += time.monotonic() - begin
        self.decompressed += 1
        return beats

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`Backend`."""
        payload = self.compress(job, beats_in(x, view))
        golden = self._golden.compress_tensor(x, view, job)
        assert torch.equal(payload, golden), f"{job.mode.label} payload of {tuple(x.shape)} differs from the golden one"
        return payload

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`Backend`."""
        x = tensor_from_beats(self.decompress(job, payload), view, shape)
        golden = self._golden.decompress_tensor(payload, view, job, shape)
        assert same_bits(x, golden), f"{job.mode.label} tensor {tuple(shape)} differs from the golden one"
        return x
