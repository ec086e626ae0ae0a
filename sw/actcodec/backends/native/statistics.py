"""Statistics of channels by compiled kernels, bit for bit equal to the golden model."""

from __future__ import annotations

import torch
from cdu_spec.matrix_view import MatrixView
from torch import Tensor

from actcodec.backends.job import FORMATS
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import kernels
from actcodec.golden import sfpr
from actcodec.golden.channel_statistics import DROPPED_BITS, ERROR_BITS, moments_of, place_factors


def channel_maxima(channels: Tensor, nonfinite: str = "raise") -> Tensor:
    """Compute :func:`actcodec.golden.sfpr.channel_maxima`."""
    sfpr.check_nonfinite_policy(nonfinite)
    x = host(channels)
    largest = torch.empty(x.shape[1], dtype=torch.float32)
    if not kernels()("channel_maxima", x, FORMATS[x.dtype], *x.shape, largest):
        return sfpr.channel_maxima(channels, nonfinite)
    return largest.to(torch.float64)


def residual_maxima(x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
    """Compute :func:`actcodec.golden.block_statistics.residual_maxima`."""
    x = host(x)
    largest = torch.empty(view.channels, dtype=torch.float32)
    layout = (view.rows, view.columns, view.channels, view.channel_rows)
    kernels()("residual_maxima", x, FORMATS[x.dtype], *layout, k.contiguous(), largest)
    return largest


def channel_edges(channels: Tensor) -> tuple[Tensor, Tensor]:
    """Compute :func:`actcodec.golden.channel_statistics.channel_edges`."""
    x = host(channels)
    least, greatest = torch.empty(2, x.shape[1], dtype=torch.float32)
    kernels()("channel_edges", x, FORMATS[x.dtype], *x.shape, least, greatest)
    return least.to(torch.float64), greatest.to(torch.float64)


def channel_sums(channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
    """Compute :func:`actcodec.golden.channel_statistics.channel_sums`."""
    x = host(channels)
    values, squares = torch.empty(2, x.shape[1], dtype=torch.int64)
    scale = (least, place_factors(least, greatest), DROPPED_BITS)
    kernels()("channel_moments", x, FORMATS[x.dtype], *x.shape, *scale, values, squares)
    return values, squares


def channel_moments(channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
    """Compute :func:`actcodec.golden.channel_statistics.channel_moments`."""
    return moments_of(*channel_sums(channels, least, greatest), channels[:, 0].numel(), least, greatest)


def squared_errors(channels: Tensor, steps: Tensor) -> Tensor:
    """Compute :func:`actcodec.golden.channel_statistics.squared_errors`."""
    x = host(channels)
    squares = torch.empty(x.shape[1], dtype=torch.int64)
    kernels()("squared_errors", x, FORMATS[x.dtype], *x.shape, steps, 2.0**ERROR_BITS, squares)
    return squares
