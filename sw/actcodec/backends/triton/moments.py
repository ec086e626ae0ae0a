"""Statistics of channels: extremes, mean and variance, from sums of integers, which are the same in any order."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from actcodec.backends.triton.launch import bits_of, launch
from actcodec.backends.triton.sfpr import tile, tiled
from actcodec.backends.triton.values import number, whole
from actcodec.backends.triton.zeros import is_last, zeros
from actcodec.golden import channel_statistics as golden

_PLACE, _SQUARE = tl.constexpr(2.0**golden.PLACE_BITS), tl.constexpr(2.0**golden.SQUARE_BITS)
_DROPPED, _ROUNDING = tl.constexpr(golden.DROPPED_BITS), tl.constexpr(1 << golden.DROPPED_BITS >> 1)
#: Sum of a rank, int32, and this is positive.
_ABOVE = tl.constexpr(1 - torch.iinfo(torch.int32).min)
#: Number of channels whose numbers the last program makes at once.
_CHANNELS = 1024
_CHANNELS_AT_ONCE = tl.constexpr(_CHANNELS)


@triton.jit
def _ranks(bits: tl.tensor) -> tl.tensor:
    """Return int32 in the order of the float32 numbers that have these bits; its own inverse."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _number(rank: tl.tensor) -> tl.tensor:
    """Return the float64 numbers of ranks, int32."""
    return _ranks(rank).to(tl.float32, bitcast=True).to(tl.float64)


@triton.jit
def _edges_kernel(
    x_ptr: tl.tensor,
    ranks_ptr: tl.tensor,
    edges_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    channels: tl.tensor,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    row, column = tile(columns, tile_rows, tile_columns)
    inside = (row < rows) & (column < columns)
    rank = _ranks(number(tl.load(x_ptr + row * columns + column, mask=inside, other=0)).to(tl.int32, bitcast=True))
    least = tl.max(tl.where(inside, (~rank).to(tl.int64) + _ABOVE, 0), axis=1, keep_dims=True)
    greatest = tl.max(tl.where(inside, rank.to(tl.int64) + _ABOVE, 0), axis=1, keep_dims=True)
    tl.atomic_max(ranks_ptr + row % channels, least, mask=row < rows, sem="relaxed")
    tl.atomic_max(ranks_ptr + channels + row % channels, greatest, mask=row < rows, sem="relaxed")
    if is_last(ranks_ptr + 2 * channels):
        for start in range(0, channels, _CHANNELS_AT_ONCE):
            channel = start + tl.arange(0, _CHANNELS_AT_ONCE)
            there = channel < channels
            low = (tl.load(ranks_ptr + channel, mask=there, other=0) - _ABOVE).to(tl.int32)
            high = (tl.load(ranks_ptr + channels + channel, mask=there, other=0) - _ABOVE).to(tl.int32)
            tl.store(edges_ptr + channel, _number(~low), mask=there)
            tl.store(edges_ptr + channels + channel, _number(high), mask=there)


@triton.jit
def _moments_kernel(
    x_ptr: tl.tensor,
    least_ptr: tl.tensor,
    greatest_ptr: tl.tensor,
    sums_ptr: tl.tensor,
    moments_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    channels: tl.tensor,
    count: tl.tensor,
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
    tl.atomic_add(sums_ptr + row % channels, tl.sum(place, axis=1, keep_dims=True), mask=row < rows, sem="relaxed")
    tl.atomic_add(sums_ptr + channels + row % channels, tl.sum(square, axis=1, keep_dims=True), mask=row < rows, sem="relaxed")
    if is_last(sums_ptr + 2 * channels):
        for start in range(0, channels, _CHANNELS_AT_ONCE):
            channel = start + tl.arange(0, _CHANNELS_AT_ONCE)
            there = channel < channels
            low = tl.load(least_ptr + channel, mask=there, other=0)
            span = tl.load(greatest_ptr + channel, mask=there, other=0) - low
            values = tl.load(sums_ptr + channel, mask=there, other=0).to(tl.float64)
            squares = tl.load(sums_ptr + channels + channel, mask=there, other=0).to(tl.float64)
            number_of_values = (count + tl.zeros_like(channel)).to(tl.float64)
            mean = values / (number_of_values * _PLACE)
            spread = tl.maximum(squares / (number_of_values * _SQUARE) - mean * mean, 0.0)
            tl.store(moments_ptr + channel, low + span * mean, mask=there)
            tl.store(moments_ptr + channels + channel, span * span * spread, mask=there)


def channel_edges(channels: Tensor) -> tuple[Tensor, Tensor]:
    """Compute :func:`actcodec.golden.channel_statistics.channel_edges`."""
    least, greatest = edges = torch.empty(2, channels.shape[1], dtype=torch.float64, device=channels.device)
    _launch(_edges_kernel, channels, (), edges, ())
    return least, greatest


def channel_moments(channels: Tensor, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
    """Compute :func:`actcodec.golden.channel_statistics.channel_moments`."""
    mean, variance = moments = torch.empty(2, channels.shape[1], dtype=torch.float64, device=channels.device)
    _launch(_moments_kernel, channels, (least.contiguous(), greatest.contiguous()), moments, (channels[:, 0].numel(),))
    return mean, variance


def _launch(kernel: Any, channels: Tensor, given: tuple[Tensor, ...], found: Tensor, count: tuple[int, ...]) -> None:
    """Run a kernel that adds numbers of all programs, of which its last one makes those of ``found``, (2, channels)."""
    outer, channel_count, inner = channels.shape
    added = zeros(2 * channel_count + 1, channels.device)
    programs, shape = tiled(outer * channel_count, inner)
    sizes = (outer * channel_count, inner, channel_count, *count)
    launch(kernel, programs, bits_of(channels.contiguous()), *given, added, found, *sizes, **shape)
