"""Statistics of channels by compiled kernels, bit for bit equal to the golden model."""

from __future__ import annotations

from functools import lru_cache

import torch
from cdu_spec.matrix_view import MatrixView
from cdu_spec.sfpr import SCALE_EXPONENT_LIMIT, SCALE_UNIT, SFPR_RECIPROCAL_BITS, VALUE_MAX
from torch import Tensor

from actcodec.backends.job import FORMATS
from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import kernels
from actcodec.golden import sfpr
from actcodec.golden.channel_statistics import DROPPED_BITS, ERROR_BITS, moments_of, place_factors
from actcodec.golden.near_zero import LEAST_SQUARE, MOST_SQUARE, SURE_SHARE


def channel_maxima(channels: Tensor, nonfinite: str = "raise") -> Tensor:
    """Compute :func:`actcodec.golden.sfpr.channel_maxima`."""
    sfpr.check_nonfinite_policy(nonfinite)
    largest = finite_maxima(channels)
    return sfpr.channel_maxima(channels, nonfinite) if largest is None else largest


def finite_maxima(channels: Tensor) -> Tensor | None:
    """Return :func:`actcodec.golden.sfpr.channel_maxima` of (outer, channels, inner); None if values are not all finite."""
    x = host(channels)
    largest = torch.empty(x.shape[1], dtype=torch.float32)
    return largest.to(torch.float64) if kernels()("channel_maxima", x, FORMATS[x.dtype], *x.shape, largest) else None


def scales_of(largest: Tensor, S: float, scale_bits: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:  # noqa: N803
    """Compute :func:`actcodec.golden.sfpr.scales_of`."""
    k, r = torch.empty(2, largest.numel(), dtype=torch.float32)
    kernels()("scales", host(largest), largest.numel(), *scale_rule(S, scale_bits, dtype), k, r)
    return k, r


@lru_cache
def scale_rule(S: float, scale_bits: int, dtype: torch.dtype) -> tuple[float, ...]:  # noqa: N803
    """Return the arguments of kernels that compute multipliers; UserError for settings that the golden model refuses."""
    sfpr.check_scales(S, scale_bits)
    code = (SCALE_UNIT * float(S), float(SCALE_UNIT), float(VALUE_MAX))
    return *code, scale_bits, SFPR_RECIPROCAL_BITS, SCALE_EXPONENT_LIMIT, *sfpr.reciprocal_limits(dtype)


def near_zero(channels: Tensor) -> bool:
    """Return whether it is certain by :mod:`actcodec.golden.near_zero` that no channel, nor any of its maps, is far from zero.

    ``channels`` is (outer, channels, inner), float32, bfloat16 or float16, on the CPU.
    """
    x = host(channels)
    return bool(kernels()("near_zero", x, FORMATS[x.dtype], *x.shape, SURE_SHARE, LEAST_SQUARE, MOST_SQUARE))


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
