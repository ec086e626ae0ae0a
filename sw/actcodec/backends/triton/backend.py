"""Backend ``triton``: kernels on GPUs that produce the golden model's bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from cdu_spec.affine import AffineSettings
from cdu_spec.matrix_view import MatrixView
from torch import Tensor

from actcodec.backends.job import DTYPES, Job
from actcodec.backends.torch_backend import TorchBackend
from actcodec.backends.triton import groups
from actcodec.backends.triton import sfpr as kernels
from actcodec.backends.triton.modes import DECODERS, ENCODERS
from actcodec.backends.triton.residuals import residual_maxima
from actcodec.golden import block_statistics, sfpr
from actcodec.golden import codes as golden_codes
from actcodec.golden import floating as golden


def _channel_maxima(channels: Tensor, nonfinite: str = "raise") -> Tensor:
    sfpr.check_nonfinite_policy(nonfinite)
    largest = kernels.maxima(channels.contiguous())
    if not bool(largest.isfinite().all()):
        return sfpr.channel_maxima(channels, nonfinite)
    return largest.to(torch.float64)


def _residual_maxima(x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
    return residual_maxima(x.contiguous(), view, k.contiguous())


#: Golden functions and their kernels.
IMPLEMENTATIONS: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType(
    {
        sfpr.channel_maxima: _channel_maxima,
        block_statistics.residual_maxima: _residual_maxima,
        golden_codes.pack_tight: groups.pack,
        golden_codes.unpack_tight: groups.unpack,
        golden.groups.edges: groups.edges,
        golden.groups.codes: groups.codes,
        golden.groups.values: groups.values,
    }
)


class TritonBackend(TorchBackend):
    """Backend of kernels for whole tensors; every byte and every value equals the golden model's.

    Raises UserError for tensors that are not on a GPU, unless Triton's interpreter computes.
    """

    implementations = IMPLEMENTATIONS

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        if job.mode not in ENCODERS or (isinstance(job.how, AffineSettings) and job.how.statistics):
            return super().compress_tensor(x, view, job)
        return ENCODERS[job.mode](x.contiguous(), view, job)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`; the golden model reports errors in a payload."""
        least, most = view.payload_bounds(job.dtype, job.how)
        if job.mode in DECODERS and least <= payload.numel() <= most:
            y = torch.empty(tuple(shape), dtype=DTYPES[job.dtype], device=payload.device)
            if DECODERS[job.mode](payload.contiguous(), view, job, y):
                return y
        return super().decompress_tensor(payload, view, job, shape)
