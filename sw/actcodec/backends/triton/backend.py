"""Backend ``triton``: kernels on GPUs that produce the golden model's bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from cdu_spec.affine import AffineSettings
from cdu_spec.bitstream import Header
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from torch import Tensor

from actcodec.backends.backend import Ending, Nearness
from actcodec.backends.job import DTYPES, NO_SCALES, Job, Scaling, decompression_job
from actcodec.backends.torch_backend import TorchBackend
from actcodec.backends.triton import blocks, groups, moments, scaled_rows
from actcodec.backends.triton import sfpr as kernels
from actcodec.backends.triton.answers import Answer
from actcodec.backends.triton.lengths import Measured
from actcodec.backends.triton.modes import DECODERS, ENCODERS, Decoder, Encoder
from actcodec.backends.triton.residuals import residual_maxima
from actcodec.backends.triton.scales import largest_of, near_zero_marks, reciprocals, rounded_scales, size_of, statistics
from actcodec.golden import block_statistics, channel_statistics, sfpr
from actcodec.golden import codes as golden_codes
from actcodec.golden import floating as golden


def _channel_maxima(channels: Tensor, nonfinite: str = "raise") -> Tensor:
    sfpr.check_nonfinite_policy(nonfinite)
    largest = kernels.maxima(channels.contiguous()).view(torch.float64)
    return largest if all(map(isfinite, largest.tolist())) else sfpr.channel_maxima(channels, nonfinite)


def _residual_maxima(x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
    return residual_maxima(x.contiguous(), view, k.contiguous())


#: Golden functions and their kernels.
IMPLEMENTATIONS: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType(
    {
        sfpr.channel_maxima: _channel_maxima,
        sfpr.rounded_scales: rounded_scales,
        sfpr.reciprocals: reciprocals,
        channel_statistics.channel_edges: moments.channel_edges,
        channel_statistics.channel_moments: moments.channel_moments,
        block_statistics.residual_maxima: _residual_maxima,
        golden_codes.pack_tight: groups.pack,
        golden_codes.unpack_tight: groups.unpack,
        golden.blocks.mx_codes: blocks.mx_codes,
        golden.blocks.mx_values: blocks.mx_values,
        golden.blocks.nvfp4_codes: blocks.nvfp4_codes,
        golden.blocks.nvfp4_values: blocks.nvfp4_values,
        golden.groups.ranges: groups.ranges,
        golden.groups.coded: groups.coded,
        golden.groups.codes: groups.codes,
        golden.groups.packed_codes: groups.packed_codes,
        golden.groups.values: groups.values,
        golden.groups.values_of_packed: groups.values_of_packed,
        golden.scaled_rows.codes: scaled_rows.codes,
        golden.scaled_rows.values: scaled_rows.values,
    }
)


class TritonBackend(TorchBackend):
    """Backend of kernels for whole tensors; every byte and every value equals the golden model's.

    Raises UserError for tensors that are not on a GPU, unless Triton's interpreter computes.
    """

    implementations = IMPLEMENTATIONS

    #: Modes with kernels.
    encoders: ClassVar[Mapping[Mode, Encoder]] = ENCODERS
    decoders: ClassVar[Mapping[Mode, Decoder]] = DECODERS

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        if job.mode not in self.encoders or (isinstance(job.how, AffineSettings) and job.how.statistics):
            return super().compress_tensor(x, view, job)
        found = self.encoders[job.mode](x.contiguous(), view, job, None)
        return found.payload() if isinstance(found, Measured) else found

    def begin_scaled(self, x: Tensor, view: MatrixView, scaling: Scaling, near_zero: bool) -> Ending | None:
        """Implement :class:`~actcodec.backends.backend.Backend`; the host waits for marks and the size of the payload."""
        if view.mode not in self.encoders:
            return None
        shared = near_zero and view.channels == 1  # all channels of axis 1 have marks, and one scale
        if view.channels == 1:
            channels = x.flatten(2) if shared else x.view(1, 1, -1)
        else:
            channels = x.view(-1, view.channels, view.channel_rows * view.columns)
        rule = (scaling.S, scaling.scale_bits)
        made = statistics(channels, *rule, wide=scaling.wide, shared=shared, blocks=view.blocks)
        job = replace(scaling.job(NO_SCALES), scales=made.k)
        least, most = view.payload_bounds(job.dtype, job.how)
        early = Answer(made.marks) if least == most else None  # the host need not wait for the payload
        found = self.encoders[view.mode](x, view, job, made.marks)
        answer = early or Answer(made.marks)

        def end() -> tuple[Tensor, Tensor] | None:
            size = size_of(answer.read(), near_zero)
            if size is None:
                return None
            return found.payload(size) if isinstance(found, Measured) else found, made.r

        return end

    def begin_near_zero(self, channels: Tensor) -> Nearness:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        marks = near_zero_marks(channels)
        answer = Answer(marks)

        def holds(below: float = inf) -> bool:
            return size_of(answer.read(), near_zero=True, below=below) is not None

        return Nearness(largest_of(marks), holds)

    def begin_finite(self, x: Tensor) -> Callable[[], bool] | None:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        answer = Answer(kernels.maxima(x.detach().contiguous().view(1, 1, -1)).view(torch.float64))
        return lambda: isfinite(answer.read()[0])

    def compress_scaled(self, x: Tensor, view: MatrixView, scaling: Scaling, near_zero: bool) -> tuple[Tensor, Tensor] | None:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        end = self.begin_scaled(x, view, scaling, near_zero)
        return None if end is None else end()

    def decompress_stream(
        self, header: Header, shifts: Sequence[int], reciprocals: Tensor, payload: Tensor, offsets: Tensor
    ) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`; kernels take the scales of channels."""
        job = replace(decompression_job(header, shifts, NO_SCALES), scales=reciprocals, offsets=offsets)
        y = self._decoded(payload, header.view, job, header.shape)
        return super().decompress_stream(header, shifts, reciprocals, payload, offsets) if y is None else y

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`; the golden model reports errors in a payload."""
        y = self._decoded(payload, view, job, shape)
        return super().decompress_tensor(payload, view, job, shape) if y is None else y

    def _decoded(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor | None:
        """Return the tensor of a payload; None if kernels cannot decode it."""
        least, most = view.payload_bounds(job.dtype, job.how)
        if job.mode not in self.decoders or not least <= payload.numel() <= most:
            return None
        y = torch.empty(tuple(shape), dtype=DTYPES[job.dtype], device=payload.device)
        return y if self.decoders[job.mode](payload.contiguous(), view, job, y) else None
