"""Backend ``triton``: kernels on GPUs that produce the golden model's bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from cdu_spec.affine import AffineSettings
from cdu_spec.bitstream import Header
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from torch import Tensor

from actcodec.backends.job import DTYPES, Job, Scaling
from actcodec.backends.torch_backend import TorchBackend
from actcodec.backends.triton import groups
from actcodec.backends.triton import sfpr as kernels
from actcodec.backends.triton.constants import INFINITY
from actcodec.backends.triton.modes import DECODERS, ENCODERS, decode_rows, encode_rows
from actcodec.backends.triton.residuals import residual_maxima
from actcodec.backends.triton.scales import scales
from actcodec.golden import block_statistics, sfpr
from actcodec.golden import codes as golden_codes
from actcodec.golden import floating as golden


def _channel_maxima(channels: Tensor, nonfinite: str = "raise") -> Tensor:
    sfpr.check_nonfinite_policy(nonfinite)
    bits = kernels.maxima(channels.contiguous())
    if int(bits.max()) >= INFINITY.value:
        return sfpr.channel_maxima(channels, nonfinite)
    return bits.view(torch.float32).to(torch.float64)


def _residual_maxima(x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
    return residual_maxima(x.contiguous(), view, k.contiguous())


#: Golden functions and their kernels.
IMPLEMENTATIONS: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType(
    {
        sfpr.channel_maxima: _channel_maxima,
        block_statistics.residual_maxima: _residual_maxima,
        golden_codes.pack_tight: groups.pack,
        golden_codes.unpack_tight: groups.unpack,
        golden.groups.ranges: groups.ranges,
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

    def compress_scaled(self, x: Tensor, view: MatrixView, scaling: Scaling, near_zero: bool) -> tuple[Tensor, Tensor] | None:
        """Implement :class:`~actcodec.backends.backend.Backend`; the host asks for the scales' marks when all is launched."""
        if view.mode not in ENCODERS:
            return None
        found = scales(x.view(-1, view.channels, view.channel_rows * view.columns), scaling.S, scaling.scale_bits)
        is_sfpr = view.mode is Mode.SFPR
        payload = encode_rows(x, view, found.k) if is_sfpr else self.compress_tensor(x, view, scaling.job(found.k))
        return (payload, found.r) if found.hold(near_zero) else None

    def decompress_stream(
        self, header: Header, shifts: Sequence[int], reciprocals: Tensor, payload: Tensor, offsets: Tensor
    ) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`; mode sfpr needs no job."""
        view = header.view
        if header.mode is not Mode.SFPR or payload.numel() != view.payload_bounds(header.dtype)[0]:
            return super().decompress_stream(header, shifts, reciprocals, payload, offsets)
        y = torch.empty(header.shape, dtype=DTYPES[header.dtype], device=payload.device)
        decode_rows(payload.contiguous(), view, reciprocals.to(payload.device), y)
        return y

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`; the golden model reports errors in a payload."""
        least, most = view.payload_bounds(job.dtype, job.how)
        if job.mode in DECODERS and least <= payload.numel() <= most:
            y = torch.empty(tuple(shape), dtype=DTYPES[job.dtype], device=payload.device)
            if DECODERS[job.mode](payload.contiguous(), view, job, y):
                return y
        return super().decompress_tensor(payload, view, job, shape)
