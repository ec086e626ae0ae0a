"""Backend ``auto``: uses the fastest backend on each tensor's device that produces the golden model's bytes."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from cdu_spec.bitstream import MatrixView
from cdu_spec.huffman import HuffmanTables
from cdu_spec.mx import BlockFormat, ScaleRule
from cdu_tools.errors import MissingToolError, UserError
from torch import Tensor

from actcodec.backends.backend import Backend, triton_backend
from actcodec.backends.block_quantizer import BlockQuantizer
from actcodec.backends.entropy_coder import EntropyCoder
from actcodec.backends.group_quantizer import GroupQuantizer
from actcodec.backends.job import Job
from actcodec.backends.predicted_coder import Predicted, PredictedCoder
from actcodec.backends.range_quantizer import RangeQuantizer
from actcodec.backends.row_quantizer import RowQuantizer, RowSteps
from actcodec.backends.sign_arithmetic import SignArithmetic, Signs
from actcodec.backends.step_quantizer import StepQuantizer
from actcodec.backends.torch_backend import TorchBackend
from actcodec.golden.pooling import Means, Pooling


@functools.cache
def _on_the_cpu() -> Backend:
    """Return the native backend, which compiles its kernels once; without a compiler, warn once and return the golden model."""
    from actcodec.backends.native.backend import NativeBackend

    try:
        return NativeBackend()
    except UserError as error:
        warnings.warn(f"backend 'auto' computes by torch, which is slower: {error}", stacklevel=2)
        return TorchBackend()


@functools.cache
def _on_a_gpu() -> Backend:
    try:
        return triton_backend()
    except MissingToolError:
        return TorchBackend()


def fastest(x: Tensor) -> Backend:
    """Return ``native`` for tensors on the CPU, ``triton`` on CUDA devices, and the golden model where these are missing."""
    kinds = {"cpu": _on_the_cpu, "cuda": _on_a_gpu}
    return kinds.get(x.device.type, TorchBackend)()


class AutoBackend(TorchBackend):
    """Backend chosen by the device of each tensor; the choice changes no byte. The golden model computes jobs of beats."""

    def channel_maxima(self, channels: Tensor, nonfinite: str = "raise") -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(channels).channel_maxima(channels, nonfinite)

    def residual_maxima(self, x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(x).residual_maxima(x, view, k)

    def channel_edges(self, channels: Tensor) -> tuple[Tensor, Tensor]:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(channels).channel_edges(channels)

    def channel_moments(self, channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(channels).channel_moments(channels, least, greatest)

    def squared_errors(self, channels: Tensor, steps: Tensor) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(channels).squared_errors(channels, steps)

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(x).compress_tensor(x, view, job)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return fastest(payload).decompress_tensor(payload, view, job, shape)

    def entropy_coder(self) -> EntropyCoder:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return AutoEntropyCoder()

    def step_quantizer(self) -> StepQuantizer:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return AutoStepQuantizer()

    def predicted_coder(self) -> PredictedCoder:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return AutoPredictedCoder()

    def row_quantizer(self) -> RowQuantizer:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return AutoRowQuantizer()

    def range_quantizer(self) -> RangeQuantizer:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return AutoRangeQuantizer()

    def block_quantizer(self) -> BlockQuantizer:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return AutoBlockQuantizer()

    def sign_arithmetic(self) -> SignArithmetic:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return AutoSignArithmetic(self)

    def group_quantizer(self) -> GroupQuantizer:
        """Implement :class:`~actcodec.backends.backend.Backend`."""
        return AutoGroupQuantizer()


class AutoEntropyCoder(EntropyCoder):
    """Entropy coder that hands each tensor to the backend of :func:`fastest`."""

    def encode(self, coefficients: Tensor, huffman: str) -> tuple[HuffmanTables, Tensor]:
        """Implement :class:`EntropyCoder`."""
        return fastest(coefficients).entropy_coder().encode(coefficients, huffman)

    def decode(self, segment: Tensor, count: int, tables: HuffmanTables) -> Tensor:
        """Implement :class:`EntropyCoder`."""
        return fastest(segment).entropy_coder().decode(segment, count, tables)


class AutoStepQuantizer(StepQuantizer):
    """Quantiser of BLPA's steps that hands each tensor to the backend of :func:`fastest`."""

    def pack(self, x: Tensor, step: Tensor, first: Tensor, bits: int) -> Tensor:
        """Implement :class:`StepQuantizer`."""
        return fastest(x).step_quantizer().pack(x, step, first, bits)

    def values(self, packed: Tensor, *grid: Any, **ends: Any) -> Tensor:
        """Implement :class:`StepQuantizer`."""
        return fastest(packed).step_quantizer().values(packed, *grid, **ends)


class AutoSignArithmetic(SignArithmetic):
    """Arithmetic of exact signs that hands each tensor to the backend of :func:`fastest`."""

    def signs(self, decoded: Tensor, unit: Tensor, original: Tensor) -> Signs:
        """Implement :class:`SignArithmetic`."""
        return fastest(decoded).sign_arithmetic().signs(decoded, unit, original)

    def finish(self, decoded: Tensor, *given: Any, **ends: Any) -> None:
        """Implement :class:`SignArithmetic`."""
        fastest(decoded).sign_arithmetic().finish(decoded, *given, **ends)


class AutoPredictedCoder(PredictedCoder):
    """Coder of predicted whole steps that hands each tensor to the backend of :func:`fastest`."""

    def cells(self, x: Tensor, step: Tensor) -> Predicted:
        """Implement :class:`PredictedCoder`."""
        return fastest(x).predicted_coder().cells(x, step)

    def multiples(self, x: Tensor, step: Tensor, dimensions: int | None = None) -> Predicted:
        """Implement :class:`PredictedCoder`."""
        return fastest(x).predicted_coder().multiples(x, step, dimensions)

    def middles(self, predicted: Predicted, step: Tensor, *original: Any, **ends: Any) -> Tensor:
        """Implement :class:`PredictedCoder`."""
        return fastest(step).predicted_coder().middles(predicted, step, *original, **ends)

    def products(self, predicted: Predicted, step: Tensor, *original: Any) -> Tensor:
        """Implement :class:`PredictedCoder`."""
        return fastest(step).predicted_coder().products(predicted, step, *original)


class AutoRowQuantizer(RowQuantizer):
    """Quantiser of rows that hands each tensor to the backend of :func:`fastest`."""

    def codes(self, x: Tensor, steps: RowSteps, seed: int, *, drop_zeros: bool) -> tuple[Tensor, Tensor]:
        """Implement :class:`RowQuantizer`."""
        return fastest(x).row_quantizer().codes(x, steps, seed, drop_zeros=drop_zeros)

    def values(self, codes: Tensor, mask: Tensor, steps: RowSteps, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Implement :class:`RowQuantizer`."""
        return fastest(codes).row_quantizer().values(codes, mask, steps, shape, dtype)


class AutoRangeQuantizer(RangeQuantizer):
    """Quantiser of ranges that hands each tensor to the backend of :func:`fastest`."""

    def means(self, x: Tensor, pooling: Pooling) -> Tensor:
        """Implement :class:`RangeQuantizer`."""
        return fastest(x).range_quantizer().means(x, pooling)

    def edges(self, x: Tensor, range_values: int, means: Means | None = None) -> tuple[Tensor, Tensor]:
        """Implement :class:`RangeQuantizer`."""
        return fastest(x).range_quantizer().edges(x, range_values, means)

    def codes(self, x: Tensor, *grid: Any) -> Tensor:
        """Implement :class:`RangeQuantizer`."""
        return fastest(x).range_quantizer().codes(x, *grid)

    def values(self, codes: Tensor, *grid: Any) -> Tensor:
        """Implement :class:`RangeQuantizer`."""
        return fastest(codes).range_quantizer().values(codes, *grid)

    def upsampled(self, means: Means, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Implement :class:`RangeQuantizer`."""
        return fastest(means.means).range_quantizer().upsampled(means, shape, dtype)


class AutoBlockQuantizer(BlockQuantizer):
    """Quantiser of MX and NVFP4 blocks that hands each tensor to the backend of :func:`fastest`."""

    def mx_codes(self, x: Tensor, kind: BlockFormat, rule: ScaleRule) -> Tensor:
        """Implement :class:`BlockQuantizer`."""
        return fastest(x).block_quantizer().mx_codes(x, kind, rule)

    def mx_values(self, payload: Tensor, kind: BlockFormat, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Implement :class:`BlockQuantizer`."""
        return fastest(payload).block_quantizer().mx_values(payload, kind, shape, dtype)

    def nvfp4_codes(self, x: Tensor, scale: Tensor) -> Tensor:
        """Implement :class:`BlockQuantizer`."""
        return fastest(x).block_quantizer().nvfp4_codes(x, scale)

    def nvfp4_values(self, payload: Tensor, scale: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Implement :class:`BlockQuantizer`."""
        return fastest(payload).block_quantizer().nvfp4_values(payload, scale, shape, dtype)


class AutoGroupQuantizer(GroupQuantizer):
    """Quantiser of groups within samples that hands each tensor to the backend of :func:`fastest`."""

    def edges(self, x: Tensor, group: int) -> tuple[Tensor, Tensor]:
        """Implement :class:`GroupQuantizer`."""
        return fastest(x).group_quantizer().edges(x, group)

    def codes(self, x: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, seed: int | None) -> Tensor:
        """Implement :class:`GroupQuantizer`."""
        return fastest(x).group_quantizer().codes(x, group, low, extent, bits, seed)

    def values(
        self, codes: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, shape: Sequence[int], dtype: torch.dtype
    ) -> Tensor:
        """Implement :class:`GroupQuantizer`."""
        return fastest(codes).group_quantizer().values(codes, group, low, extent, bits, shape, dtype)

    def pack(self, codes: Tensor, bits: int) -> Tensor:
        """Implement :class:`GroupQuantizer`."""
        return fastest(codes).group_quantizer().pack(codes, bits)

    def unpack(self, packed: Tensor, bits: int, count: int) -> Tensor:
        """Implement :class:`GroupQuantizer`."""
        return fastest(packed).group_quantizer().unpack(packed, bits, count)
