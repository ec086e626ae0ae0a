"""Base of the backends of generated units: the checks that a host makes."""

from __future__ import annotations

from abc import abstractmethod

from actcodec.backends.backend import Backend
from actcodec.backends.job import Job, padded_view
from actcodec.golden.heads import check_heads
from cdu_driver import JobLostError, JobRefusedError
from cdu_spec.affine import AffineSettings
from cdu_spec.bitstream import BitstreamError
from torch import Tensor


class UnitBackend(Backend):
    """Backend whose jobs are computed by a unit with the reference driver.

    Faults of a payload that a unit does not detect (docs/reference/bitstream.md, section 7) are refused before the unit gets
    the job. A job that the unit itself refuses raises BitstreamError, so that callers need not know where a stream is decoded.
    """

    def decompress(self, job: Job, payload: Tensor) -> Tensor:
        """Implement :class:`Backend`."""
        check_payload(job, payload)
        try:
            return self._decompress(job, payload)
        except (JobLostError, JobRefusedError) as error:
            raise BitstreamError(f"corrupted stream: {error}") from None

    @abstractmethod
    def _decompress(self, job: Job, payload: Tensor) -> Tensor:
        """Do :meth:`decompress` for a payload that passed :func:`check_payload`. Raises JobLostError and JobRefusedError."""


def check_payload(job: Job, payload: Tensor) -> None:
    """Raise BitstreamError for a payload, uint8 (n,), whose length the job cannot have, or with a head that is no range."""
    least, most = padded_view(job).payload_bounds(job.dtype, job.how)
    if not least <= payload.numel() <= most:
        raise BitstreamError(
            f"corrupted stream: {payload.numel()} payload bytes are not {job.beats} beats of mode {job.mode.label}"
        )
    if isinstance(job.how, AffineSettings):
        check_heads(payload, job.mode, job.how)
