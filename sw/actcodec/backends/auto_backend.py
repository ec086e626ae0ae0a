"""Backend ``auto``: for each tensor the fastest of the backends that give the golden model's bytes where the tensor is."""

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
    """The kernels, compiled when they are first needed; the golden model, with one warning, where they cannot be."""
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
    """What computes a tensor: ``native`` on the CPU, ``triton`` on CUDA devices, the golden model where these are missing."""
    kinds = {"cpu": _on_the_cpu, "cuda": _on_a_gpu}
    return kinds.get(x.device.type, TorchBackend)()


class AutoBackend(TorchBackend):
    """Looks at each tensor; which backend computes it changes no byte. Jobs of beats are the golden model's."""

    def channel_maxima(self, channels: Tensor, nonfinite: str = "raise") -> Tensor:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return fastest(channels).channel_maxima(channels, nonfinite)

    def residual_maxima(self, x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return fastest(x).residual_maxima(x, view, k)

    def channel_edges(self, channels: Tensor) -> tuple[Tensor, Tensor]:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return fastest(channels).channel_edges(channels)

    def channel_moments(self, channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return fastest(channels).channel_moments(channels, least, greatest)

    def squared_errors(self, channels: Tensor, steps: Tensor) -> Tensor:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return fastest(channels).squared_errors(channels, steps)

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return fastest(x).compress_tensor(x, view, job)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return fastest(payload).decompress_tensor(payload, view, job, shape)

    def entropy_coder(self) -> EntropyCoder:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return AutoEntropyCoder()

    def step_quantizer(self) -> StepQuantizer:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return AutoStepQuantizer()

    def predicted_coder(self) -> PredictedCoder:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return AutoPredictedCoder()

    def row_quantizer(self) -> RowQuantizer:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return AutoRowQuantizer()

    def range_quantizer(self) -> RangeQuantizer:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return AutoRangeQuantizer()

    def block_quantizer(self) -> BlockQuantizer:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return AutoBlockQuantizer()

    def sign_arithmetic(self) -> SignArithmetic:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return AutoSignArithmetic(self)

    def group_quantizer(self) -> GroupQuantizer:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return AutoGroupQuantizer()


class AutoEntropyCoder(EntropyCoder):
    """See :class:`EntropyCoder`."""

    def encode(self, coefficients: Tensor, huffman: str) -> tuple[HuffmanTables, Tensor]:
        """See :class:`EntropyCoder`."""
        return fastest(coefficients).entropy_coder().encode(coefficients, huffman)

    def decode(self, segment: Tensor, count: int, tables: HuffmanTables) -> Tensor:
        """See :class:`EntropyCoder`."""
        return fastest(segment).entropy_coder().decode(segment, count, tables)


class AutoStepQuantizer(StepQuantizer):
    """See :class:`StepQuantizer`."""

    def pack(self, x: Tensor, step: Tensor, first: Tensor, bits: int) -> Tensor:
        """See :class:`StepQuantizer`."""
        return fastest(x).step_quantizer().pack(x, step, first, bits)

    def values(self, packed: Tensor, *grid: Any, **ends: Any) -> Tensor:
        """See :class:`StepQuantizer`."""
        return fastest(packed).step_quantizer().values(packed, *grid, **ends)


class AutoSignArithmetic(SignArithmetic):
    """See :class:`SignArithmetic`."""

    def signs(self, decoded: Tensor, unit: Tensor, original: Tensor) -> Signs:
        """See :class:`SignArithmetic`."""
        return fastest(decoded).sign_arithmetic().signs(decoded, unit, original)

    def finish(self, decoded: Tensor, *given: Any, **ends: Any) -> None:
        """See :class:`SignArithmetic`."""
        fastest(decoded).sign_arithmetic().finish(decoded, *given, **ends)


class AutoPredictedCoder(PredictedCoder):
    """See :class:`PredictedCoder`."""

    def cells(self, x: Tensor, step: Tensor) -> Predicted:
        """See :class:`PredictedCoder`."""
        return fastest(x).predicted_coder().cells(x, step)

    def multiples(self, x: Tensor, step: Tensor, dimensions: int | None = None) -> Predicted:
        """See :class:`PredictedCoder`."""
        return fastest(x).predicted_coder().multiples(x, step, dimensions)

    def middles(self, predicted: Predicted, step: Tensor, *original: Any, **ends: Any) -> Tensor:
        """See :class:`PredictedCoder`."""
        return fastest(step).predicted_coder().middles(predicted, step, *original, **ends)

    def products(self, predicted: Predicted, step: Tensor, *original: Any) -> Tensor:
        """See :class:`PredictedCoder`."""
        return fastest(step).predicted_coder().products(predicted, step, *original)


class AutoRowQuantizer(RowQuantizer):
    """See :class:`RowQuantizer`."""

    def codes(self, x: Tensor, steps: RowSteps, seed: int, *, drop_zeros: bool) -> tuple[Tensor, Tensor]:
        """See :class:`RowQuantizer`."""
        return fastest(x).row_quantizer().codes(x, steps, seed, drop_zeros=drop_zeros)

    def values(self, codes: Tensor, mask: Tensor, steps: RowSteps, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """See :class:`RowQuantizer`."""
        return fastest(codes).row_quantizer().values(codes, mask, steps, shape, dtype)


class AutoRangeQuantizer(RangeQuantizer):
    """See :class:`RangeQuantizer`."""

    def means(self, x: Tensor, pooling: Pooling) -> Tensor:
        """See :class:`RangeQuantizer`."""
        return fastest(x).range_quantizer().means(x, pooling)

    def edges(self, x: Tensor, range_values: int, means: Means | None = None) -> tuple[Tensor, Tensor]:
        """See :class:`RangeQuantizer`."""
        return fastest(x).range_quantizer().edges(x, range_values, means)

    def codes(self, x: Tensor, *grid: Any) -> Tensor:
        """See :class:`RangeQuantizer`."""
        return fastest(x).range_quantizer().codes(x, *grid)

    def values(self, codes: Tensor, *grid: Any) -> Tensor:
        """See :class:`RangeQuantizer`."""
        return fastest(codes).range_quantizer().values(codes, *grid)

    def upsampled(self, means: Means, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """See :class:`RangeQuantizer`."""
        return fastest(means.means).range_quantizer().upsampled(means, shape, dtype)


class AutoBlockQuantizer(BlockQuantizer):
    """See :class:`BlockQuantizer`."""

    def mx_codes(self, x: Tensor, kind: BlockFormat, rule: ScaleRule) -> Tensor:
        """See :class:`BlockQuantizer`."""
        return fastest(x).block_quantizer().mx_codes(x, kind, rule)

    def mx_values(self, payload: Tensor, kind: BlockFormat, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """See :class:`BlockQuantizer`."""
        return fastest(payload).block_quantizer().mx_values(payload, kind, shape, dtype)

    def nvfp4_codes(self, x: Tensor, scale: Tensor) -> Tensor:
        """See :class:`BlockQuantizer`."""
        return fastest(x).block_quantizer().nvfp4_codes(x, scale)

    def nvfp4_values(self, payload: Tensor, scale: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """See :class:`BlockQuantizer`."""
        return fastest(payload).block_quantizer().nvfp4_values(payload, scale, shape, dtype)


class AutoGroupQuantizer(GroupQuantizer):
    """See :class:`GroupQuantizer`."""

    def edges(self, x: Tensor, group: int) -> tuple[Tensor, Tensor]:
        """See :class:`GroupQuantizer`."""
        return fastest(x).group_quantizer().edges(x, group)

    def codes(self, x: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, seed: int | None) -> Tensor:
        """See :class:`GroupQuantizer`."""
        return fastest(x).group_quantizer().codes(x, group, low, extent, bits, seed)

    def values(
        self, codes: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, shape: Sequence[int], dtype: torch.dtype
    ) -> Tensor:
        """See :class:`GroupQuantizer`."""
        return fastest(codes).group_quantizer().values(codes, group, low, extent, bits, shape, dtype)

    def pack(self, codes: Tensor, bits: int) -> Tensor:
        """See :class:`GroupQuantizer`."""
        return fastest(codes).group_quantizer().pack(codes, bits)

    def unpack(self, packed: Tensor, bits: int, count: int) -> Tensor:
        """See :class:`GroupQuantizer`."""
        return fastest(packed).group_quantizer().unpack(packed, bits, count)
