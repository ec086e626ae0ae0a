"""Backend ``auto``: for each tensor the fastest of the backends that give the golden model's bytes where the tensor is."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence

import torch
from cdu_spec.bitstream import MatrixView
from cdu_spec.huffman import HuffmanTables
from cdu_tools.errors import MissingToolError, UserError
from torch import Tensor

from actcodec.backends.backend import Backend, triton_backend
from actcodec.backends.entropy_coder import EntropyCoder
from actcodec.backends.group_quantizer import GroupQuantizer
from actcodec.backends.job import Job
from actcodec.backends.torch_backend import TorchBackend


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

    def compress_tensor(self, x: Tensor, view: MatrixView, job: Job) -> Tensor:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return fastest(x).compress_tensor(x, view, job)

    def decompress_tensor(self, payload: Tensor, view: MatrixView, job: Job, shape: Sequence[int]) -> Tensor:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return fastest(payload).decompress_tensor(payload, view, job, shape)

    def entropy_coder(self) -> EntropyCoder:
        """See :class:`~actcodec.backends.backend.Backend`."""
        return AutoEntropyCoder()

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
