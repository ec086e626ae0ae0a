"""Backend ``native``: compiled kernels on the CPU that produce the golden model's bytes."""

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
from actcodec.backends.native import blocks, entropy, groups, predicted, ranges, rows, scaled_rows, signs, statistics, steps
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import kernels
from actcodec.backends.native.modes import DECODERS, ENCODERS, compress_rows, decode_rows
from actcodec.backends.torch_backend import TorchBackend
from actcodec.golden import block_statistics, channel_statistics, entropy_decoder, entropy_encoder, sfpr
from actcodec.golden import codes as golden_codes
from actcodec.golden import floating as golden

#: Golden functions and their compiled kernels.
IMPLEMENTATIONS: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType(
    {
        sfpr.channel_maxima: statistics.channel_maxima,
        sfpr.scales_of: statistics.scales_of,
        block_statistics.residual_maxima: statistics.residual_maxima,
        channel_statistics.channel_edges: statistics.channel_edges,
        channel_statistics.channel_sums: statistics.channel_sums,
        channel_statistics.channel_moments: statistics.channel_moments,
        channel_statistics.squared_errors: statistics.squared_errors,
        entropy_encoder.encode: entropy.encode,
        entropy_decoder.decode: entropy.decode,
        golden_codes.pack_tight: groups.pack,
        golden_codes.unpack_tight: groups.unpack,
        golden.groups.ranges: groups.ranges,
        golden.groups.coded: groups.coded,
        golden.groups.codes: groups.codes,
        golden.groups.packed_codes: groups.packed_codes,
        golden.groups.values: groups.values,
        golden.groups.values_of_packed: groups.values_of_packed,
        golden.ranges.means: ranges.means,
        golden.ranges.edges: ranges.edges,
        golden.ranges.codes: ranges.codes,
        golden.ranges.values: ranges.values,
        golden.ranges.upsampled: ranges.upsampled,
        golden.rows.codes: rows.codes,
        golden.rows.values: rows.values,
        golden.scaled_rows.codes: scaled_rows.codes,
        golden.scaled_rows.values: scaled_rows.values,
        golden.steps.pack: steps.pack,
        golden.steps.values: steps.values,
        golden.predicted.cells: predicted.cells,
        golden.predicted.multiples: predicted.multiples,
        golden.predicted.middles: predicted.middles,
        golden.predicted.products: predicted.products,
        golden.signs.compare: signs.compare,
        golden.signs.correct: signs.correct,
        golden.blocks.mx_codes: blocks.mx_codes,
        golden.blocks.mx_values: blocks.mx_values,
        golden.blocks.nvfp4_codes: blocks.nvfp4_codes,
        golden.blocks.nvfp4_values: blocks.nvfp4_values,
    }
)


class NativeBackend(TorchBackend):
    """Backend of fused kernels for whole tensors; every byte and every value equals the golden model's.

    Mode bypass, the first pass of division, and jobs of beats have no kernels; the golden model computes them.
    Kernels of blocks compute mode mx.

    Raises UserError for tensors that are not on the CPU, MissingToolError without a compiler.
    """

    implementations = IMPLEMENTATIONS

    def __init__(self) -> None:
        kernels()

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        x = host(x)
        if job.mode not in ENCODERS or (isinstance(job.how, AffineSettings) and job.how.statistics):
            return super().compress_tensor(x, view, job)
        return ENCODERS[job.mode](x, view, job)

    def compress_scaled(self, x: Tensor, view: MatrixView, scaling: Scaling, near_zero: bool) -> tuple[Tensor, Tensor] | None:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        x = host(x)
        if view.mode not in ENCODERS or scaling.wide or (near_zero and not statistics.near_zero(x.flatten(2))):
            return None
        if view.mode is Mode.SFPR:
            return compress_rows(x, view, statistics.scale_rule(scaling.S, scaling.scale_bits, x.dtype))
        largest = statistics.finite_maxima(x.view(-1, view.channels, view.channel_rows * view.columns))
        if largest is None:
            return None
        k, r = statistics.scales_of(largest, scaling.S, scaling.scale_bits, x.dtype)
        return self.compress_tensor(x, view, scaling.job(k)), r

    def decompress_stream(
        self, header: Header, shifts: Sequence[int], reciprocals: Tensor, payload: Tensor, offsets: Tensor
    ) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`; mode sfpr needs no job."""
        view = header.view
        if header.mode is not Mode.SFPR or payload.numel() != view.payload_bounds(header.dtype)[0]:
            return super().decompress_stream(header, shifts, reciprocals, payload, offsets)
        y = torch.empty(header.shape, dtype=DTYPES[header.dtype])
        decode_rows(host(payload), view, host(reciprocals), y)
        return y

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`; the golden model reports errors in a payload."""
        payload = host(payload)
        least, most = view.payload_bounds(job.dtype, job.how)
        if job.mode in DECODERS and least <= payload.numel() <= most:
            y = torch.empty(tuple(shape), dtype=DTYPES[job.dtype])
            if DECODERS[job.mode](payload, view, job, y):
                return y
        return super().decompress_tensor(payload, view, job, shape)
