"""Scales of channels in one launch, without a question to the host: its last program makes them of the sums of all programs.

Beside the scales, the kernel leaves marks; the host asks once, after other kernels have used the scales, whether they hold
(:func:`size_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np
import torch
import triton
import triton.language as tl
from cdu_spec.affine import RECIPROCAL_EXPONENT_LIMIT
from cdu_spec.sfpr import DEFAULT_S, RECIPROCAL_BITS, SCALE_BITS, SCALE_EXPONENT_LIMIT, SCALE_UNIT, SFPR_RECIPROCAL_BITS
from torch import Tensor

from actcodec.backends.triton.constants import BASE_MAX, VALUE_MAX
from actcodec.backends.triton.launch import bits_of, launch, programs_for, tile_of
from actcodec.backends.triton.lengths import LARGEST, UNSURE, marks_for
from actcodec.backends.triton.values import magnitude_bits, number
from actcodec.backends.triton.zeros import is_last, zeros
from actcodec.golden import sfpr
from actcodec.golden.near_zero import LEAST_SQUARE, MOST_SQUARE, SURE_SHARE

#: Most values of a piece that lie side by side, and most rows of a piece of a column.
_PIECE_VALUES, _PIECE_ROWS = 4096, 256
#: Number of channels whose scales the last program makes at once.
_CHANNELS = 1024
#: Number of scales that a program rounds.
_NUMBERS = 256
#: Significand bits of float64.
_SIGNIFICAND_BITS = 53
_ONE, _CHANNELS_AT_ONCE = tl.constexpr(1), tl.constexpr(_CHANNELS)
_LEAST, _MOST = tl.constexpr(2.0**-SCALE_EXPONENT_LIMIT), tl.constexpr(2.0**SCALE_EXPONENT_LIMIT)


@dataclass(frozen=True, eq=False)
class Scales:
    """Multipliers and reciprocals, float32 (channels,) or (1,), and marks, int64, which say whether they hold.

    Sums of the lengths of blocks may follow the marks (:mod:`actcodec.backends.triton.lengths`).
    """

    k: Tensor
    r: Tensor
    marks: Tensor


def size_of(marks: Sequence[int], near_zero: bool, below: float = inf) -> int | None:
    """Return the sum of the lengths that marks have behind them; None unless the scales hold.

    They hold if all magnitudes are below a number and, with ``near_zero``, if it is certain that no channel is far from zero.
    """
    largest, unsure, *lengths = marks
    too_large = largest >= int(np.float32(below).view(np.int32))
    return None if too_large or (near_zero and unsure) else sum(lengths)


def largest_of(marks: Tensor) -> Tensor:
    """Return the largest magnitude that marks hold, float32 (), where they are."""
    return marks[LARGEST.value : LARGEST.value + 1].view(torch.float32)[0]


@triton.jit
def _rounded(x: tl.tensor, dropped: tl.constexpr, least: tl.tensor, most: tl.tensor, down: tl.constexpr = False) -> tl.tensor:
    """Limit positive float64 numbers to two bounds and round them, half to even or down, without some bits, float32."""
    whole = tl.minimum(tl.maximum(x, least), most).to(tl.int64, bitcast=True)
    if not down:
        whole += (_ONE << (dropped - 1)) - 1 + ((whole >> dropped) & 1)
    rounded = (whole >> dropped << dropped).to(tl.float64, bitcast=True)
    return tl.minimum(tl.maximum(rounded, least), most).to(tl.float32)


@triton.jit
def _store_scales(
    k_ptr: tl.tensor,
    r_ptr: tl.tensor,
    bits: tl.tensor,
    channel: tl.tensor,
    channels: tl.tensor,
    rule_ptr: tl.tensor,
    dropped: tl.constexpr,
    r_dropped: tl.constexpr,
    down: tl.constexpr,
) -> None:
    """Store multipliers and reciprocals of channels whose largest magnitudes, float32, have these bits, int64."""
    unit, even, limit, greatest = tl.load(rule_ptr), tl.load(rule_ptr + 1), tl.load(rule_ptr + 2), tl.load(rule_ptr + 3)
    size = bits.to(tl.int32).to(tl.float32, bitcast=True).to(tl.float64)
    exact = tl.where(bits > 0, unit / tl.where(bits > 0, size, 1.0), even)
    k = _rounded(exact, dropped, tl.load(rule_ptr + 4), _MOST, down)
    r = _rounded(1.0 / k.to(tl.float64), r_dropped, _LEAST, _MOST)
    # Rounding may move the code of the largest finite number beyond it. A half is rounded to the even number below.
    r = tl.where((size * k.to(tl.float64) > VALUE_MAX - 0.5) & (r.to(tl.float64) > limit), greatest.to(tl.float32), r)
    tl.store(k_ptr + channel, k, mask=channel < channels)
    tl.store(r_ptr + channel, r, mask=channel < channels)


@triton.jit
def _settle(
    largest_ptr: tl.tensor,
    moments_ptr: tl.tensor,
    rule_ptr: tl.tensor,
    k_ptr: tl.tensor,
    r_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    channels: tl.tensor,
    values: tl.tensor,
    shared: tl.constexpr,
    dropped: tl.constexpr,
    r_dropped: tl.constexpr,
    down: tl.constexpr,
) -> None:
    """Make the scales of all channels, or the one that they share, and the marks, of the sums of all programs."""
    share, least_square, most_square = tl.load(rule_ptr + 5), tl.load(rule_ptr + 6), tl.load(rule_ptr + 7)
    most = tl.zeros((_CHANNELS_AT_ONCE,), tl.int64)
    unsure = tl.zeros((_CHANNELS_AT_ONCE,), tl.int64)
    for start in range(0, channels, _CHANNELS_AT_ONCE):
        channel = start + tl.arange(0, _CHANNELS_AT_ONCE)
        inside = channel < channels
        bits = tl.load(largest_ptr + channel, mask=inside, other=0)
        most = tl.maximum(most, bits)
        if not shared:
            _store_scales(k_ptr, r_ptr, bits, channel, channels, rule_ptr, dropped, r_dropped, down)
        means = tl.load(moments_ptr + channel, mask=inside, other=0)
        whole = tl.load(moments_ptr + channels + channel, mask=inside, other=0)
        square = whole / values
        sure = (square >= least_square) & (square <= most_square) & (means <= share * whole)
        unsure = tl.maximum(unsure, (inside & ~(sure | ((whole == 0) & (means == 0)))).to(tl.int64))
    largest = tl.max(most, axis=0)
    if shared:
        bits = tl.zeros((_CHANNELS_AT_ONCE,), tl.int64) + largest
        first = tl.arange(0, _CHANNELS_AT_ONCE)
        _store_scales(k_ptr, r_ptr, bits, first, 1, rule_ptr, dropped, r_dropped, down)
    tl.store(marks_ptr + LARGEST, largest)
    tl.store(marks_ptr + UNSURE, tl.max(unsure, axis=0))


@triton.jit
def _statistics_kernel(
    x_ptr: tl.tensor,
    largest_ptr: tl.tensor,
    moments_ptr: tl.tensor,
    rule_ptr: tl.tensor,
    k_ptr: tl.tensor,
    r_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    pieces: tl.tensor,
    channels: tl.tensor,
    inner: tl.tensor,
    per_map: tl.tensor,
    values: tl.tensor,
    outer: tl.tensor,
    of_channel: tl.tensor,
    by_column: tl.constexpr,
    shared: tl.constexpr,
    dropped: tl.constexpr,
    r_dropped: tl.constexpr,
    down: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    piece = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    if by_column:
        first = piece // channels * values
        channel = piece % channels
        begin, count = first * channels + channel, tl.minimum(outer - first, values)
    else:
        first = piece % per_map * values
        channel = piece // per_map % channels
        begin, count = piece // per_map * inner + first, tl.minimum(inner - first, values)
    inside = piece < pieces
    sums = tl.zeros((tile_rows, tile_columns), tl.float32)
    squares = tl.zeros((tile_rows, tile_columns), tl.float32)
    largest = tl.zeros((tile_rows, tile_columns), tl.int32)
    for start in range(0, values, tile_columns):
        place = start + tl.arange(0, tile_columns)[None, :]
        step = place * channels if by_column else place
        x = number(tl.load(x_ptr + begin[:, None] + step, mask=inside[:, None] & (place < count[:, None]), other=0))
        sums += x
        squares += x * x
        largest = tl.maximum(largest, magnitude_bits(x))
    total = tl.sum(sums.to(tl.float64), axis=1)
    means = total * total / tl.maximum(count, 1).to(tl.float64)
    # Orders of the sums differ from run to run: what they decide does not (:mod:`actcodec.golden.near_zero`).
    tl.atomic_add(moments_ptr + channel, means, mask=inside, sem="relaxed")
    tl.atomic_add(moments_ptr + channels + channel, tl.sum(squares.to(tl.float64), axis=1), mask=inside, sem="relaxed")
    tl.atomic_max(largest_ptr + channel, tl.max(largest, axis=1).to(tl.int64), mask=inside, sem="relaxed")
    if is_last(largest_ptr + channels):
        _settle(
            largest_ptr,
            moments_ptr,
            rule_ptr,
            k_ptr,
            r_ptr,
            marks_ptr,
            channels,
            of_channel,
            shared,
            dropped,
            r_dropped,
            down,
        )


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
def _rule(S: float, scale_bits: int, wide: bool, dtype: torch.dtype, device: torch.device) -> Tensor:  # noqa: N803
    """Return the numbers of the rule that kernels read, float64; UserError for settings that the golden model refuses."""
    sfpr.check_scales(S, scale_bits)
    if wide:
        rule = (float(BASE_MAX.value), 2.0**SCALE_EXPONENT_LIMIT, inf, inf, 2.0**-RECIPROCAL_EXPONENT_LIMIT)
    else:
        rule = (SCALE_UNIT * float(S), float(SCALE_UNIT), *sfpr.reciprocal_limits(dtype), 2.0**-SCALE_EXPONENT_LIMIT)
    return torch.tensor((*rule, SURE_SHARE, LEAST_SQUARE, MOST_SQUARE), dtype=torch.float64, device=device)


def statistics(
    channels: Tensor,
    S: float,  # noqa: N803
    scale_bits: int,
    *,
    wide: bool = False,
    shared: bool = False,
    blocks: int = 0,
) -> Scales:
    """Return the scales of contiguous (outer, channels, inner), or with ``shared`` one of all, without waiting.

    They are those of :func:`actcodec.golden.sfpr.scales` or, if ``wide``, of the integers of 16 bits of the affine modes. Marks
    have places for the sums of the lengths of ``blocks``.
    """
    outer, count, inner = channels.shape
    by_column = inner == 1
    values = min(outer, _PIECE_ROWS) if by_column else min(inner, _PIECE_VALUES)
    maps, per_map = (programs_for(outer, values), 1) if by_column else (outer, programs_for(inner, values))
    pieces, device = maps * count * per_map, channels.device
    # The number of programs that are done follows the largest magnitudes.
    largest, moments = zeros(count + 1, device), zeros(2 * count, device).view(torch.float64)
    k, r = (torch.empty(1 if shared else count, dtype=torch.float32, device=device) for _ in range(2))
    found = Scales(k, r, zeros(marks_for(blocks), device))
    # Neighbours in memory are neighbours in a tile.
    side = tile_of(count if by_column else values)
    shape = dict(zip(side, reversed(side.values()), strict=True)) if by_column else side
    rule = _rule(S, scale_bits, wide, channels.dtype, device)
    tensors = (bits_of(channels), largest, moments, rule, k, r, found.marks)
    sizes = (pieces, count, inner, per_map, values, outer, outer * inner)
    reciprocal_bits = max(RECIPROCAL_BITS) if wide else SFPR_RECIPROCAL_BITS
    rounding = {"dropped": _SIGNIFICAND_BITS - scale_bits, "r_dropped": _SIGNIFICAND_BITS - reciprocal_bits}
    form = {"by_column": by_column, "shared": shared, **rounding, "down": wide, **shape}
    launch(_statistics_kernel, programs_for(pieces, shape["tile_rows"]), *tensors, *sizes, **form)
    return found


def near_zero_marks(channels: Tensor) -> Tensor:
    """Return the marks of contiguous (outer, channels, inner), as :func:`size_of` takes them."""
    return statistics(channels, DEFAULT_S, max(SCALE_BITS)).marks


def near_zero(channels: Tensor) -> bool:
    """Return whether it is certain by :mod:`actcodec.golden.near_zero` that no channel, nor any of its maps, is far from zero.

    ``channels`` is contiguous (outer, channels, inner). The host waits for the device.
    """
    return size_of(near_zero_marks(channels).tolist(), near_zero=True) is not None


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
