"""Backend ``triton``: kernels on GPUs that produce the golden model's bytes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from cdu_spec.bitstream import MatrixView
from torch import Tensor

from actcodec.backends.job import DTYPES, Job
from actcodec.backends.torch_backend import TorchBackend
from actcodec.backends.triton import sfpr
from actcodec.backends.triton.group_quantizer import TritonGroupQuantizer
from actcodec.backends.triton.modes import DECODERS, ENCODERS
from actcodec.backends.triton.residuals import residual_maxima
from actcodec.golden.sfpr import check_nonfinite_policy


class TritonBackend(TorchBackend):
    """Backend of kernels for whole tensors; every byte and every value equals the golden model's.

    Raises UserError for tensors that are not on a GPU, unless Triton's interpreter computes.
    """

    def channel_maxima(self, channels: Tensor, nonfinite: str = "raise") -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        check_nonfinite_policy(nonfinite)
        largest = sfpr.maxima(channels.contiguous())
        if not bool(largest.isfinite().all()):
            return super().channel_maxima(channels, nonfinite)
        return largest.to(torch.float64)

    def residual_maxima(self, x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return residual_maxima(x.contiguous(), view, k.contiguous())

    def group_quantizer(self) -> TritonGroupQuantizer:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return TritonGroupQuantizer()

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        if job.mode not in ENCODERS or (job.settings is not None and job.settings.statistics):
            return super().compress_tensor(x, view, job)
        return ENCODERS[job.mode](x.contiguous(), view, job)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`; the golden model reports errors in a payload."""
        least, most = view.payload_bounds(job.dtype, job.settings, job.coder, job.mx)
        if job.mode in DECODERS and least <= payload.numel() <= most:
            y = torch.empty(tuple(shape), dtype=DTYPES[job.dtype], device=payload.device)
            if DECODERS[job.mode](payload.contiguous(), view, job, y):
                return y
        return super().decompress_tensor(payload, view, job, shape)
