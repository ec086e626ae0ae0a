"""Scales of channels in two launches: sums and extremes of pieces, then multipliers and reciprocals.

The host asks once, after kernels that use them, whether the scales hold (:class:`Scales`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
import triton
import triton.language as tl
from cdu_spec.sfpr import DEFAULT_S, RECIPROCAL_BITS, SCALE_BITS, SCALE_EXPONENT_LIMIT, SCALE_UNIT, SFPR_RECIPROCAL_BITS
from torch import Tensor

from actcodec.backends.triton.constants import INFINITY, VALUE_MAX
from actcodec.backends.triton.launch import bits_of, launch, programs_for, tile_of
from actcodec.backends.triton.lengths import NOT_FINITE, UNSURE, marks_for
from actcodec.backends.triton.values import magnitude_bits, number
from actcodec.golden import sfpr
from actcodec.golden.near_zero import LEAST_SQUARE, MOST_SQUARE, SURE_SHARE

#: Most values of a piece that lie side by side, and most rows of a piece of a column.
_PIECE_VALUES, _PIECE_ROWS = 4096, 256
#: Tile of the second kernel.
_PIECES, _CHANNELS = 32, 32
#: Number of scales that a program rounds.
_NUMBERS = 256
#: Number of marks that a program of the first kernel makes zero at once.
_ZEROS = tl.constexpr(32)
#: Significand bits of float64.
_SIGNIFICAND_BITS = 53


@dataclass(frozen=True, eq=False)
class Scales:
    """Multipliers and reciprocals, float32 (channels,) each, and marks, int64, of why they may not hold.

    Sums of the lengths of blocks may follow the marks (:mod:`actcodec.backends.triton.lengths`).
    """

    k: Tensor
    r: Tensor
    marks: Tensor

    def size(self, near_zero: bool) -> int | None:
        """Return the sum of the lengths; None unless the scales hold.

        They hold if all values are finite and, with ``near_zero``, if it is certain that no channel is far from zero. The host
        waits for the device.
        """
        not_finite, unsure, *lengths = self.marks.tolist()
        return None if not_finite or (near_zero and unsure) else sum(lengths)


@triton.jit
def _pieces_kernel(
    x_ptr: tl.tensor,
    sums_ptr: tl.tensor,
    squares_ptr: tl.tensor,
    largest_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    pieces: tl.tensor,
    channels: tl.tensor,
    inner: tl.tensor,
    per_map: tl.tensor,
    values: tl.tensor,
    outer: tl.tensor,
    marks: tl.tensor,
    by_column: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    piece = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    if by_column:
        first = piece // channels * values
        begin, count = first * channels + piece % channels, tl.minimum(outer - first, values)
    else:
        first = piece % per_map * values
        begin, count = piece // per_map * inner + first, tl.minimum(inner - first, values)
    inside = (piece < pieces)[:, None]
    sums = tl.zeros((tile_rows, tile_columns), tl.float32)
    squares = tl.zeros((tile_rows, tile_columns), tl.float32)
    largest = tl.zeros((tile_rows, tile_columns), tl.int32)
    for start in range(0, values, tile_columns):
        place = start + tl.arange(0, tile_columns)[None, :]
        step = place * channels if by_column else place
        x = number(tl.load(x_ptr + begin[:, None] + step, mask=inside & (place < count[:, None]), other=0))
        sums += x
        squares += x * x
        largest = tl.maximum(largest, magnitude_bits(x))
    total = tl.sum(sums.to(tl.float64), axis=1)
    tl.store(sums_ptr + piece, total * total / tl.maximum(count, 1).to(tl.float64), mask=piece < pieces)
    tl.store(squares_ptr + piece, tl.sum(squares.to(tl.float64), axis=1), mask=piece < pieces)
    tl.store(largest_ptr + piece, tl.max(largest, axis=1), mask=piece < pieces)
    for first in range(tl.program_id(0) * _ZEROS, marks, tl.num_programs(0) * _ZEROS):
        mark = first + tl.arange(0, _ZEROS)
        tl.store(marks_ptr + mark, tl.zeros_like(mark), mask=mark < marks)


@triton.jit
def _rounded(x: tl.tensor, dropped: tl.constexpr, least: tl.tensor, most: tl.tensor, down: tl.constexpr = False) -> tl.tensor:
    """Limit positive float64 numbers to two bounds and round them, half to even or down, without some bits, float32."""
    whole = tl.minimum(tl.maximum(x, least), most).to(tl.int64, bitcast=True)
    if not down:
        whole += (1 << (dropped - 1)) - 1 + ((whole >> dropped) & 1)
    rounded = (whole >> dropped << dropped).to(tl.float64, bitcast=True)
    return tl.minimum(tl.maximum(rounded, least), most).to(tl.float32)


@triton.jit
def _scales_kernel(
    sums_ptr: tl.tensor,
    squares_ptr: tl.tensor,
    largest_ptr: tl.tensor,
    rule_ptr: tl.tensor,
    k_ptr: tl.tensor,
    r_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    maps: tl.tensor,
    channels: tl.tensor,
    per_map: tl.tensor,
    count: tl.tensor,
    scale_dropped: tl.constexpr,
    reciprocal_dropped: tl.constexpr,
    tile_pieces: tl.constexpr,
    tile_channels: tl.constexpr,
) -> None:
    channel = tl.program_id(0).to(tl.int64) * tile_channels + tl.arange(0, tile_channels)
    sums = tl.zeros((tile_pieces, tile_channels), tl.float64)
    squares = tl.zeros((tile_pieces, tile_channels), tl.float64)
    largest = tl.zeros((tile_pieces, tile_channels), tl.int32)
    for start in range(0, maps * per_map, tile_pieces):
        piece = (start + tl.arange(0, tile_pieces))[:, None]
        place = (piece // per_map * channels + channel[None, :]) * per_map + piece % per_map
        inside = (piece < maps * per_map) & (channel < channels)[None, :]
        sums += tl.load(sums_ptr + place, mask=inside, other=0)
        squares += tl.load(squares_ptr + place, mask=inside, other=0)
        largest = tl.maximum(largest, tl.load(largest_ptr + place, mask=inside, other=0))
    means, whole, bits = tl.sum(sums, axis=0), tl.sum(squares, axis=0), tl.max(largest, axis=0)
    unit, even = tl.load(rule_ptr), tl.load(rule_ptr + 1)
    least, most = tl.load(rule_ptr + 2), tl.load(rule_ptr + 3)
    limit, greatest = tl.load(rule_ptr + 4), tl.load(rule_ptr + 5)
    share, least_square, most_square = tl.load(rule_ptr + 6), tl.load(rule_ptr + 7), tl.load(rule_ptr + 8)
    size = bits.to(tl.float32, bitcast=True).to(tl.float64)
    k = _rounded(tl.where(bits > 0, unit / tl.where(bits > 0, size, 1.0), even), scale_dropped, least, most)
    wide = k.to(tl.float64)
    r = _rounded(1.0 / wide, reciprocal_dropped, least, most)
    # Rounding may move the code of the largest finite number beyond it. A half is rounded to the even number below.
    r = tl.where((size * wide > VALUE_MAX - 0.5) & (r.to(tl.float64) > limit), greatest.to(tl.float32), r)
    tl.store(k_ptr + channel, k, mask=channel < channels)
    tl.store(r_ptr + channel, r, mask=channel < channels)
    square = whole / count
    sure = (square >= least_square) & (square <= most_square) & (means <= share * whole)
    unsure = (channel < channels) & ~(sure | ((whole == 0) & (means == 0)))
    tl.atomic_max(marks_ptr + NOT_FINITE, tl.max((bits >= INFINITY).to(tl.int64), axis=0))
    tl.atomic_max(marks_ptr + UNSURE, tl.max(unsure.to(tl.int64), axis=0))


@triton.jit
def _rounded_kernel(
    x_ptr: tl.tensor,
    y_ptr: tl.tensor,
    count: tl.tensor,
    dropped: tl.constexpr,
    least: tl.constexpr,
    most: tl.constexpr,
    down: tl.constexpr,
    inverted: tl.constexpr,
    tile: tl.constexpr,
) -> None:
    at = tl.program_id(0) * tile + tl.arange(0, tile)
    x = tl.load(x_ptr + at, mask=at < count, other=1).to(tl.float64)
    if inverted:
        x = 1.0 / x
    tl.store(y_ptr + at, _rounded(x, dropped, least, most, down), mask=at < count)


@lru_cache
def _rule(S: float, scale_bits: int, dtype: torch.dtype, device: torch.device) -> Tensor:  # noqa: N803
    """Return the numbers that the second kernel reads, float64; UserError for settings that the golden model refuses."""
    sfpr.check_scales(S, scale_bits)
    bounds = (2.0**-SCALE_EXPONENT_LIMIT, 2.0**SCALE_EXPONENT_LIMIT, *sfpr.reciprocal_limits(dtype))
    numbers = (SCALE_UNIT * float(S), float(SCALE_UNIT), *bounds, SURE_SHARE, LEAST_SQUARE, MOST_SQUARE)
    return torch.tensor(numbers, dtype=torch.float64, device=device)


def scales(channels: Tensor, S: float, scale_bits: int, blocks: int = 0) -> Scales:  # noqa: N803
    """Return the scales of contiguous (outer, channels, inner) as :func:`actcodec.golden.sfpr.scales` does, without waiting.

    Marks have places for the sums of the lengths of ``blocks``.
    """
    outer, count, inner = channels.shape
    by_column = inner == 1
    values = min(outer, _PIECE_ROWS) if by_column else min(inner, _PIECE_VALUES)
    maps, per_map = (programs_for(outer, values), 1) if by_column else (outer, programs_for(inner, values))
    pieces, device = maps * count * per_map, channels.device
    sums, squares = torch.empty(2, pieces, dtype=torch.float64, device=device)
    largest = torch.empty(pieces, dtype=torch.int32, device=device)
    k, r = torch.empty(2, count, dtype=torch.float32, device=device)
    marks = torch.empty(marks_for(blocks), dtype=torch.int64, device=device)
    # Neighbours in memory are neighbours in a tile.
    side = tile_of(count if by_column else values)
    shape = dict(zip(side, reversed(side.values()), strict=True)) if by_column else side
    found = (sums, squares, largest)
    sizes = (pieces, count, inner, per_map, values, outer, marks.numel())
    programs = programs_for(pieces, shape["tile_rows"])
    launch(_pieces_kernel, programs, bits_of(channels), *found, marks, *sizes, by_column=by_column, **shape)
    rule = _rule(S, scale_bits, channels.dtype, device)
    dropped = {
        "scale_dropped": _SIGNIFICAND_BITS - scale_bits,
        "reciprocal_dropped": _SIGNIFICAND_BITS - SFPR_RECIPROCAL_BITS,
    }
    tile = {"tile_pieces": _PIECES, "tile_channels": _CHANNELS}
    places = (maps, count, per_map, outer * inner)
    launch(_scales_kernel, programs_for(count, _CHANNELS), *found, rule, k, r, marks, *places, **dropped, **tile)
    return Scales(k, r, marks)


def near_zero(channels: Tensor) -> bool:
    """Return whether it is certain by :mod:`actcodec.golden.near_zero` that no channel, nor any of its maps, is far from zero.

    ``channels`` is contiguous (outer, channels, inner). The host waits for the device.
    """
    return scales(channels, DEFAULT_S, max(SCALE_BITS)).size(near_zero=True) is not None


def rounded_scales(exact: Tensor, scale_bits: int, *, down: bool = False, exponent_limit: int = SCALE_EXPONENT_LIMIT) -> Tensor:
    """Compute :func:`actcodec.golden.sfpr.rounded_scales`."""
    return _rounded_to(scale_bits, exact, down=down, least=2.0**-exponent_limit, inverted=False)


def reciprocals(k: Tensor, bits: int = max(RECIPROCAL_BITS)) -> Tensor:
    """Compute :func:`actcodec.golden.sfpr.reciprocals`."""
    return _rounded_to(bits, k, down=False, least=2.0**-SCALE_EXPONENT_LIMIT, inverted=True)


def _rounded_to(bits: int, x: Tensor, **kind: bool | float) -> Tensor:
    y = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    bounds = {"dropped": _SIGNIFICAND_BITS - bits, "most": 2.0**SCALE_EXPONENT_LIMIT, "tile": _NUMBERS}
    launch(_rounded_kernel, programs_for(x.numel(), _NUMBERS), x.contiguous(), y, x.numel(), **kind, **bounds)
    return y
