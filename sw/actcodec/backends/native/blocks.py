"""Arithmetic of MX and NVFP4 by compiled kernels, bit for bit equal to the golden model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from cdu_spec.mx import NVFP4_FORMAT, NVFP4_SCALE, BlockFormat, ScaleRule
from torch import Tensor

from actcodec.backends.job import FORMATS
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import kernels
from actcodec.golden.mx import blocks_of, numbers
from actcodec.golden.nvfp4 import tensor_scale


def mx_codes(x: Tensor, kind: BlockFormat, rule: ScaleRule) -> Tensor:
    """Compute :func:`actcodec.golden.floating.blocks.mx_codes`."""
    x, payload = host(x), _payload(x.numel(), kind)
    kernels()("mx_codes", x, FORMATS[x.dtype], x.numel(), *_fields(kind), kind.emax, rule is ScaleRule.RCEIL, payload)
    return payload


def mx_values(payload: Tensor, kind: BlockFormat, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Compute :func:`actcodec.golden.floating.blocks.mx_values`."""
    y = torch.empty(tuple(shape), dtype=dtype)
    blocks = blocks_of(host(payload), y.numel(), kind)
    kernels()("mx_values", blocks, FORMATS[dtype], y.numel(), kind.bits, numbers(kind), torch.finfo(dtype).max, y)
    return y


def nvfp4_codes(x: Tensor, largest: Tensor) -> tuple[Tensor, Tensor]:
    """Compute :func:`actcodec.golden.floating.blocks.nvfp4_codes`."""
    x, payload, scale = host(x), _payload(x.numel(), NVFP4_FORMAT), tensor_scale(host(largest))
    kernels()(
        *("nvfp4_codes", x, FORMATS[x.dtype], x.numel(), float(scale)),
        *(*_fields(NVFP4_FORMAT), *_fields(NVFP4_SCALE), numbers(NVFP4_FORMAT), numbers(NVFP4_SCALE), payload),
    )
    return payload, scale


def nvfp4_values(payload: Tensor, scale: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Compute :func:`actcodec.golden.floating.blocks.nvfp4_values`."""
    y = torch.empty(tuple(shape), dtype=dtype)
    blocks = blocks_of(host(payload), y.numel(), NVFP4_FORMAT)
    tables = (numbers(NVFP4_FORMAT), numbers(NVFP4_SCALE))
    kernels()("nvfp4_values", blocks, FORMATS[dtype], y.numel(), float(scale), *tables, torch.finfo(dtype).max, y)
    return y


def _payload(count: int, kind: BlockFormat) -> Tensor:
    return torch.empty(-(-count // kind.values) * kind.block_bytes, dtype=torch.uint8)


def _fields(kind: BlockFormat) -> tuple[int, int, int]:
    return kind.exponent_bits, kind.fraction_bits, kind.greatest
