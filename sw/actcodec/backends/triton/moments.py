"""Statistics of channels: extremes, mean and variance, from sums of integers, which are the same in any order."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from actcodec.backends.triton.launch import bits_of, launch, programs_for
from actcodec.backends.triton.sfpr import tile, tiled
from actcodec.backends.triton.values import number, whole
from actcodec.backends.triton.zeros import zeros
from actcodec.golden import channel_statistics as golden

_PLACE, _SQUARE = tl.constexpr(2.0**golden.PLACE_BITS), tl.constexpr(2.0**golden.SQUARE_BITS)
_DROPPED, _ROUNDING = tl.constexpr(golden.DROPPED_BITS), tl.constexpr(1 << golden.DROPPED_BITS >> 1)
#: Least int32, below the rank of every number.
_LOWEST = tl.constexpr(torch.iinfo(torch.int32).min)
#: Number of channels of a program.
_CHANNELS = 128


@triton.jit
def _ranks(bits: tl.tensor) -> tl.tensor:
    """Return int32 in the order of the float32 numbers that have these bits; its own inverse."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _ranks_kernel(
    x_ptr: tl.tensor,
    ranks_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    channels: tl.tensor,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    row, column = tile(columns, tile_rows, tile_columns)
    inside = (row < rows) & (column < columns)
    rank = _ranks(number(tl.load(x_ptr + row * columns + column, mask=inside, other=0)).to(tl.int32, bitcast=True))
    least = tl.max(tl.where(inside, ~rank, _LOWEST), axis=1, keep_dims=True)
    greatest = tl.max(tl.where(inside, rank, _LOWEST), axis=1, keep_dims=True)
    tl.atomic_max(ranks_ptr + row % channels, least, mask=row < rows)
    tl.atomic_max(ranks_ptr + channels + row % channels, greatest, mask=row < rows)


@triton.jit
def _edges_kernel(ranks_ptr: tl.tensor, edges_ptr: tl.tensor, channels: tl.tensor, tile_channels: tl.constexpr) -> None:
    channel = tl.program_id(0) * tile_channels + tl.arange(0, tile_channels)
    inside = channel < channels
    least = _ranks(~tl.load(ranks_ptr + channel, mask=inside, other=0)).to(tl.float32, bitcast=True)
    greatest = _ranks(tl.load(ranks_ptr + channels + channel, mask=inside, other=0)).to(tl.float32, bitcast=True)
    tl.store(edges_ptr + channel, least.to(tl.float64), mask=inside)
    tl.store(edges_ptr + channels + channel, greatest.to(tl.float64), mask=inside)


@triton.jit
def _sums_kernel(
    x_ptr: tl.tensor,
    least_ptr: tl.tensor,
    greatest_ptr: tl.tensor,
    sums_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    channels: tl.tensor,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    row, column = tile(columns, tile_rows, tile_columns)
    inside = (row < rows) & (column < columns)
    x = number(tl.load(x_ptr + row * columns + column, mask=inside, other=0)).to(tl.float64)
    least = tl.load(least_ptr + row % channels, mask=row < rows, other=0)
    extent = tl.load(greatest_ptr + row % channels, mask=row < rows, other=0) - least
    factor = tl.where(extent > 0, 1.0 / tl.where(extent > 0, extent, 1.0) * _PLACE, 0.0)
    place = tl.where(inside, whole((x - least) * factor), 0.0).to(tl.int64)
    square = (place * place + _ROUNDING) >> _DROPPED
    tl.atomic_add(sums_ptr + row % channels, tl.sum(place, axis=1, keep_dims=True), mask=row < rows)
    tl.atomic_add(sums_ptr + channels + row % channels, tl.sum(square, axis=1, keep_dims=True), mask=row < rows)


@triton.jit
def _moments_kernel(
    sums_ptr: tl.tensor,
    least_ptr: tl.tensor,
    greatest_ptr: tl.tensor,
    moments_ptr: tl.tensor,
    count: tl.tensor,
    channels: tl.tensor,
    tile_channels: tl.constexpr,
) -> None:
    channel = tl.program_id(0) * tile_channels + tl.arange(0, tile_channels)
    inside = channel < channels
    least = tl.load(least_ptr + channel, mask=inside, other=0)
    extent = tl.load(greatest_ptr + channel, mask=inside, other=0) - least
    values = tl.load(sums_ptr + channel, mask=inside, other=0).to(tl.float64)
    squares = tl.load(sums_ptr + channels + channel, mask=inside, other=0).to(tl.float64)
    number_of_values = (count + tl.zeros_like(channel)).to(tl.float64)
    place = values / (number_of_values * _PLACE)
    spread = tl.maximum(squares / (number_of_values * _SQUARE) - place * place, 0.0)
    tl.store(moments_ptr + channel, least + extent * place, mask=inside)
    tl.store(moments_ptr + channels + channel, extent * extent * spread, mask=inside)


def channel_edges(channels: Tensor) -> tuple[Tensor, Tensor]:
    """Compute :func:`actcodec.golden.channel_statistics.channel_edges`."""
    outer, count, inner = channels.shape
    ranks = torch.full((2, count), _LOWEST.value, dtype=torch.int32, device=channels.device)
    programs, shape = tiled(outer * count, inner)
    launch(_ranks_kernel, programs, bits_of(channels.contiguous()), ranks, outer * count, inner, count, **shape)
    edges = torch.empty(2, count, dtype=torch.float64, device=channels.device)
    launch(_edges_kernel, programs_for(count, _CHANNELS), ranks, edges, count, tile_channels=_CHANNELS)
    return edges[0], edges[1]


def channel_moments(channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
    """Compute :func:`actcodec.golden.channel_statistics.channel_moments`."""
    outer, count, inner = channels.shape
    sums = zeros(2 * count, channels.device)
    programs, shape = tiled(outer * count, inner)
    tensors = (bits_of(channels.contiguous()), least, greatest, sums)
    launch(_sums_kernel, programs, *tensors, outer * count, inner, count, **shape)
    moments = torch.empty(2, count, dtype=torch.float64, device=channels.device)
    tensors = (sums, least, greatest, moments)
    launch(_moments_kernel, programs_for(count, _CHANNELS), *tensors, outer * inner, count, tile_channels=_CHANNELS)
    return moments[0], moments[1]
