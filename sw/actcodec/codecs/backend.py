"""The seam between a codec and what computes it: the torch model here, a simulated unit elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from cdu_spec.bitstream import MatrixView
from cdu_spec.errors import UserError
from torch import Tensor

from actcodec.codecs.job import Job, beats_in, tensor_from_beats


class Backend(ABC):
    """Computes jobs. A subclass needs :meth:`compress` and :meth:`decompress`, which see beats as the hardware does.

    The two ``*_tensor`` methods are what codecs call; a backend may override them where beats would be a detour.
    """

    @abstractmethod
    def compress(self, job: Job, beats: Tensor) -> Tensor:
        """Payload, uint8 (n,), of beats (job.beats, 8) in feeding order and of the dtype that ``job.dtype`` names."""

    @abstractmethod
    def decompress(self, job: Job, payload: Tensor) -> Tensor:
        """Beats (job.beats, 8), in feeding order, of the dtype that ``job.dtype`` names.

        What stands in padding is not specified. Raises BitstreamError for a payload that does not fit the job.
        """

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Payload of a tensor, on its device."""
        return self.compress(job, beats_in(x, view)).to(x.device)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """The tensor of a payload, of the dtype that ``job.dtype`` names, on the payload's device."""
        return tensor_from_beats(self.decompress(job, payload), view, shape).to(payload.device)


def backend(which: str | Backend) -> Backend:
    """A backend by name (``torch``), or the given one."""
    from actcodec.codecs.torch_backend import TorchBackend

    if isinstance(which, Backend):
        return which
    if which == "torch":
        return TorchBackend()
    raise UserError(f"unknown backend {which!r}: use 'torch' or an object derived from actcodec.codecs.Backend")
