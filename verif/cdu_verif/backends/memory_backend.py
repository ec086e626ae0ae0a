"""Base of the backends of units behind a DMA engine, which take tensors from memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from actcodec.backends.backend import Backend
from actcodec.backends.job import Job
from cdu_spec.matrix_view import MatrixView
from cdu_tools.errors import UserError
from torch import Tensor

_BEATS = "a unit behind its DMA engine takes tensors, not beats: use compress_tensor and decompress_tensor"


class MemoryBackend(Backend):
    """Backend whose jobs are descriptors: the engine, not the host, orders the beats and pads them."""

    def compress(self, job: Job, beats: Tensor) -> Tensor:
        """Raise UserError, because the engine takes whole tensors."""
        raise UserError(_BEATS)

    def decompress(self, job: Job, payload: Tensor) -> Tensor:
        """Raise UserError, because the engine gives whole tensors."""
        raise UserError(_BEATS)

    @abstractmethod
    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`Backend`."""

    @abstractmethod
    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`Backend`."""
