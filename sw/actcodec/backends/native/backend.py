"""Backend ``native``: compiled kernels on the CPU that produce the golden model's bytes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from cdu_spec.bitstream import MatrixView
from torch import Tensor

from actcodec.backends.job import DTYPES, FORMATS, Job
from actcodec.backends.native.block_quantizer import NativeBlockQuantizer
from actcodec.backends.native.entropy_coder import NativeEntropyCoder
from actcodec.backends.native.group_quantizer import NativeGroupQuantizer
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import kernels
from actcodec.backends.native.modes import DECODERS, ENCODERS
from actcodec.backends.native.predicted_coder import NativePredictedCoder
from actcodec.backends.native.range_quantizer import NativeRangeQuantizer
from actcodec.backends.native.row_quantizer import NativeRowQuantizer
from actcodec.backends.native.sign_arithmetic import NativeSignArithmetic
from actcodec.backends.native.step_quantizer import NativeStepQuantizer
from actcodec.backends.torch_backend import TorchBackend
from actcodec.golden.channel_statistics import DROPPED_BITS, ERROR_BITS, moments_of, place_factors
from actcodec.golden.sfpr import check_nonfinite_policy


class NativeBackend(TorchBackend):
    """Backend of fused kernels for whole tensors; every byte and every value equals the golden model's.

    Mode bypass, the first pass of division, and jobs of beats have no kernels; the golden model computes them.
    :class:`NativeBlockQuantizer` computes blocks of MX.

    Raises UserError for tensors that are not on the CPU, MissingToolError without a compiler.
    """

    def __init__(self) -> None:
        self._kernels = kernels()

    def channel_maxima(self, channels: Tensor, nonfinite: str = "raise") -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        check_nonfinite_policy(nonfinite)
        x = host(channels)
        largest = torch.empty(x.shape[1], dtype=torch.float32)
        if not self._kernels("channel_maxima", x, FORMATS[x.dtype], *x.shape, largest):
            return super().channel_maxima(channels, nonfinite)
        return largest.to(torch.float64)

    def residual_maxima(self, x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        x = host(x)
        largest = torch.empty(view.channels, dtype=torch.float32)
        layout = (view.rows, view.columns, view.channels, view.channel_rows)
        self._kernels("residual_maxima", x, FORMATS[x.dtype], *layout, k.contiguous(), largest)
        return largest

    def channel_edges(self, channels: Tensor) -> tuple[Tensor, Tensor]:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        x = host(channels)
        least, greatest = torch.empty(2, x.shape[1], dtype=torch.float32)
        self._kernels("channel_edges", x, FORMATS[x.dtype], *x.shape, least, greatest)
        return least.to(torch.float64), greatest.to(torch.float64)

    def channel_moments(self, channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        x = host(channels)
        values, squares = torch.empty(2, x.shape[1], dtype=torch.int64)
        scale = (least, place_factors(least, greatest), DROPPED_BITS)
        self._kernels("channel_moments", x, FORMATS[x.dtype], *x.shape, *scale, values, squares)
        return moments_of(values, squares, x[:, 0].numel(), least, greatest)

    def squared_errors(self, channels: Tensor, steps: Tensor) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        x = host(channels)
        squares = torch.empty(x.shape[1], dtype=torch.int64)
        self._kernels("squared_errors", x, FORMATS[x.dtype], *x.shape, steps, 2.0**ERROR_BITS, squares)
        return squares

    def entropy_coder(self) -> NativeEntropyCoder:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return NativeEntropyCoder()

    def step_quantizer(self) -> NativeStepQuantizer:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return NativeStepQuantizer()

    def predicted_coder(self) -> NativePredictedCoder:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return NativePredictedCoder()

    def row_quantizer(self) -> NativeRowQuantizer:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return NativeRowQuantizer()

    def range_quantizer(self) -> NativeRangeQuantizer:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return NativeRangeQuantizer()

    def block_quantizer(self) -> NativeBlockQuantizer:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return NativeBlockQuantizer()

    def sign_arithmetic(self) -> NativeSignArithmetic:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return NativeSignArithmetic(self)

    def group_quantizer(self) -> NativeGroupQuantizer:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return NativeGroupQuantizer()

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        x = host(x)
        if job.mode not in ENCODERS or (job.settings is not None and job.settings.statistics):
            return super().compress_tensor(x, view, job)
        return ENCODERS[job.mode](x, view, job)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`; the golden model reports errors in a payload."""
        payload = host(payload)
        least, most = view.payload_bounds(job.dtype, job.settings, job.coder, job.mx)
        if job.mode in DECODERS and least <= payload.numel() <= most:
            y = torch.empty(tuple(shape), dtype=DTYPES[job.dtype])
            if DECODERS[job.mode](payload, view, job, y):
                return y
        return super().decompress_tensor(payload, view, job, shape)
