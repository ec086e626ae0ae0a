"""What the backends of units behind a DMA engine have in common: they take tensors where they lie."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from actcodec.backends.backend import Backend
from actcodec.backends.job import Job
from cdu_spec.bitstream import MatrixView
from cdu_tools.errors import UserError
from torch import Tensor

_BEATS = "a unit behind its DMA engine takes tensors, not beats: use compress_tensor and decompress_tensor"


class MemoryBackend(Backend):
    """A backend whose jobs are descriptors: the order of the beats and the padding are the engine's work, not the host's."""

    def compress(self, job: Job, beats: Tensor) -> Tensor:
        """UserError."""
        raise UserError(_BEATS)

    def decompress(self, job: Job, payload: Tensor) -> Tensor:
        """UserError."""
        raise UserError(_BEATS)

    @abstractmethod
    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """See :class:`Backend`."""

    @abstractmethod
    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """See :class:`Backend`."""
