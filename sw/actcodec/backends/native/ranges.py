"""Arithmetic of ``division-float`` and ``actnn-float`` by compiled kernels, bit for bit equal to the golden model."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from actcodec.backends.job import FORMATS
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import NOTHING, kernels
from actcodec.golden.pooling import Means, Pooling

_Arguments = tuple[Tensor | float, ...]


def means(x: Tensor, pooling: Pooling) -> Tensor:
    """Compute :func:`actcodec.golden.floating.ranges.means`."""
    x, found = host(x), torch.empty(pooling.count, dtype=torch.float32)
    kernels()("cell_means", x, FORMATS[x.dtype], len(pooling.first), *_tables(pooling), pooling.count, found)
    return found


def edges(x: Tensor, range_values: int, means: Means | None = None) -> tuple[Tensor, Tensor]:
    """Compute :func:`actcodec.golden.floating.ranges.edges`."""
    x = host(x)
    least, greatest = torch.empty(2, -(-x.numel() // range_values), dtype=torch.float32)
    kernels()("range_edges", x, FORMATS[x.dtype], x.numel(), range_values, *_cells(means), least, greatest)
    return least.add_(0.0), greatest.add_(0.0)


def codes(
    x: Tensor, range_values: int, low: Tensor, step: Tensor, bits: int, seed: int | None, means: Means | None = None
) -> Tensor:
    """Compute :func:`actcodec.golden.floating.ranges.codes`."""
    x, packed = host(x), torch.empty(-(-x.numel() * bits // 8), dtype=torch.uint8)
    grid = (low.to(torch.float32), step.to(torch.float32), bits, seed is not None, seed or 0)
    kernels()("range_codes", x, FORMATS[x.dtype], x.numel(), range_values, *_cells(means), *grid, packed)
    return packed


def values(
    codes: Tensor,
    range_values: int,
    low: Tensor,
    step: Tensor,
    bits: int,
    shape: Sequence[int],
    dtype: torch.dtype,
    means: Means | None = None,
) -> Tensor:
    """Compute :func:`actcodec.golden.floating.ranges.values`."""
    y = torch.empty(tuple(shape), dtype=dtype)
    grid = (low.to(torch.float32), step.to(torch.float32), bits, torch.finfo(dtype).max)
    kernels()("range_values", host(codes), FORMATS[dtype], y.numel(), range_values, *_cells(means), *grid, y)
    return y


def upsampled(means: Tensor, pooling: Pooling, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Compute :func:`actcodec.golden.floating.ranges.upsampled`."""
    y = torch.empty(tuple(shape), dtype=dtype)
    grid = (NOTHING, NOTHING, 1, torch.finfo(dtype).max)
    kernels()("range_values", NOTHING, FORMATS[dtype], prod(y.shape), y.numel(), *_cells(Means(pooling, means)), *grid, y)
    return y


def _tables(pooling: Pooling) -> _Arguments:
    """Return a grid as arguments of kernels."""
    parts = (pooling.rows.to(torch.int32), pooling.columns.to(torch.int32), pooling.first, pooling.across.to(torch.int32))
    return (pooling.height, pooling.width, len(pooling.rows), len(pooling.columns), *parts)


def _cells(means: Means | None) -> _Arguments:
    """Return a grid and its means as arguments of kernels."""
    if means is None:
        return (1, 1, 1, 1, *[NOTHING] * 5)
    return (*_tables(means.pooling), means.means.to(torch.float32))
