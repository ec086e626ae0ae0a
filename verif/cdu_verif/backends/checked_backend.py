"""Backend that compares every result of another backend with the golden model's."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from actcodec.backends.backend import Backend, MismatchError
from actcodec.backends.job import Job
from actcodec.backends.torch_backend import TorchBackend
from cdu_spec.matrix_view import MatrixView
from torch import Tensor


class CheckedBackend(Backend):
    """Compute with another backend and compare every payload and every tensor, bit for bit, with the golden model's.

    Parameters
    ----------
    inner
        The backend that computes.

    Raises MismatchError, naming mode, shape and the first difference.
    """

    def __init__(self, inner: Backend) -> None:
        self.inner = inner
        self._golden = TorchBackend()
        self.payloads, self.tensors = 0, 0  #: numbers of results compared

    def __str__(self) -> str:
        return f"{self.payloads} payloads and {self.tensors} tensors"

    def compress(self, job: Job, beats: Tensor) -> Tensor:
        """Implement :class:`Backend`. Not compared, as codecs work with tensors."""
        return self.inner.compress(job, beats)

    def decompress(self, job: Job, payload: Tensor) -> Tensor:
        """Implement :class:`Backend`. Not compared, as the values in the padding of beats are unspecified."""
        return self.inner.decompress(job, payload)

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`Backend`."""
        payload = self.inner.compress_tensor(x, view, job)
        return self._same_payload(payload, self._golden.compress_tensor(x, view, job), job, x.shape)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`Backend`."""
        x = self.inner.decompress_tensor(payload, view, job, shape)
        return self._same_values(x, self._golden.decompress_tensor(payload, view, job, shape), job)

    def _same_payload(self, payload: Tensor, golden: Tensor, job: Job, shape: Sequence[int]) -> Tensor:
        where = f"payload number {self.payloads} ({job.mode.label}, from a tensor of shape {tuple(shape)})"
        self.payloads += 1
        if payload.numel() != golden.numel():
            raise MismatchError(f"{where} has {payload.numel()} bytes, the golden model's has {golden.numel()}")
        _compare(payload, golden, f"{where} differs from the golden model's at byte")
        return payload

    def _same_values(self, x: Tensor, golden: Tensor, job: Job) -> Tensor:
        where = f"tensor number {self.tensors} ({job.mode.label}, shape {tuple(golden.shape)})"
        self.tensors += 1
        if (x.shape, x.dtype) != (golden.shape, golden.dtype):
            raise MismatchError(f"{where} came back with shape {tuple(x.shape)} and dtype {x.dtype}")
        integers = torch.int32 if x.element_size() == 4 else torch.int16
        _compare(
            x.contiguous().view(integers).flatten(),
            golden.contiguous().view(integers).flatten(),
            f"{where} differs from the golden model's at value",
        )
        return x


def _compare(found: Tensor, expected: Tensor, where: str) -> None:
    """Raise MismatchError with the first place at which two integer tensors (n,) differ."""
    if not torch.equal(found, expected):
        place = int(torch.nonzero(found != expected)[0])
        patterns = [int(one[place]) & ((1 << 8 * one.element_size()) - 1) for one in (found, expected)]
        raise MismatchError(f"{where} {place}: {patterns[0]:#x} instead of {patterns[1]:#x}")
