"""Scales of channels without a question between kernels: sums and extremes in one launch, numbers made of them by the next one.

Kernels that use the scales compute them (:func:`multipliers`) and leave reciprocals and marks (:func:`settle`); the host asks
once, after them, whether the scales hold (:func:`size_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
import triton
import triton.language as tl
from cdu_spec.modes import Coder
from cdu_spec.sfpr import DEFAULT_S, RECIPROCAL_BITS, SCALE_BITS, SCALE_EXPONENT_LIMIT, SCALE_UNIT, SFPR_RECIPROCAL_BITS
from torch import Tensor

from actcodec.backends.triton.constants import INFINITY, VALUE_MAX
from actcodec.backends.triton.launch import bits_of, launch, programs_for, tile_of
from actcodec.backends.triton.lengths import NOT_FINITE, UNSURE, Lengths, marks_for
from actcodec.backends.triton.values import magnitude_bits, number
from actcodec.backends.triton.zeros import zeros
from actcodec.golden import sfpr
from actcodec.golden.near_zero import LEAST_SQUARE, MOST_SQUARE, SURE_SHARE

#: Most values of a piece that lie side by side, and most rows of a piece of a column.
_PIECE_VALUES, _PIECE_ROWS = 4096, 256
#: Number of channels for which a program leaves reciprocals and marks; no program of a coder has more rows.
_CHANNELS = 128
#: Number of scales that a program rounds.
_NUMBERS = 256
#: Significand bits of float64.
_SIGNIFICAND_BITS = 53
_ONE, _CHANNELS_OF_PROGRAM = tl.constexpr(1), tl.constexpr(_CHANNELS)
_RECIPROCAL_DROPPED = tl.constexpr(_SIGNIFICAND_BITS - SFPR_RECIPROCAL_BITS)


@dataclass(frozen=True, eq=False)
class Scales:
    """Multipliers of channels, or statistics of which kernels make them, and what these kernels leave.

    Sums of the lengths of blocks may follow the marks (:mod:`actcodec.backends.triton.lengths`).
    """

    numbers: Tensor  #: (channels,): bits of the largest magnitudes, as float32, int64; or multipliers, float32
    rule: Tensor  #: float64: numbers of the rule
    moments: Tensor  #: float64 (2, channels): sums of the squared means of pieces, each times its values; sums of squares
    r: Tensor  #: float32 (channels,): reciprocals, left by :func:`settle`
    marks: Tensor  #: int64: why the scales may not hold, left by :func:`settle`
    values: int  #: number of values of a channel
    dropped: int  #: bits of a float64 that multipliers do not have; 0 if they are known

    @classmethod
    def known(cls, multipliers: Tensor) -> Scales:
        """Return multipliers, float32 (channels,), as they are; kernels leave nothing."""
        return cls(*(multipliers,) * 5, 0, 0)

    @property
    def channels(self) -> int:
        """Return the number of channels."""
        return self.numbers.numel()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Return the arguments of kernels from ``scales_ptr`` to ``settled_ptr``."""
        return self.numbers, self.rule, self.moments, self.r, self.marks

    def lengths(self, coder: Coder, blocks: int) -> Lengths:
        """Return memory for the sums of the lengths of blocks, beside the marks if there are some."""
        return Lengths.of(coder, blocks, self.numbers.device, self.marks if self.dropped else None)


def size_of(marks: Sequence[int], near_zero: bool) -> int | None:
    """Return the sum of the lengths that marks have behind them; None unless the scales hold.

    They hold if all values are finite and, with ``near_zero``, if it is certain that no channel is far from zero.
    """
    not_finite, unsure, *lengths = marks
    return None if not_finite or (near_zero and unsure) else sum(lengths)


@triton.jit
def _statistics_kernel(
    x_ptr: tl.tensor,
    largest_ptr: tl.tensor,
    moments_ptr: tl.tensor,
    pieces: tl.tensor,
    channels: tl.tensor,
    inner: tl.tensor,
    per_map: tl.tensor,
    values: tl.tensor,
    outer: tl.tensor,
    by_column: tl.constexpr,
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


@triton.jit
def _rounded(x: tl.tensor, dropped: tl.constexpr, least: tl.tensor, most: tl.tensor, down: tl.constexpr = False) -> tl.tensor:
    """Limit positive float64 numbers to two bounds and round them, half to even or down, without some bits, float32."""
    whole = tl.minimum(tl.maximum(x, least), most).to(tl.int64, bitcast=True)
    if not down:
        whole += (_ONE << (dropped - 1)) - 1 + ((whole >> dropped) & 1)
    rounded = (whole >> dropped << dropped).to(tl.float64, bitcast=True)
    return tl.minimum(tl.maximum(rounded, least), most).to(tl.float32)


@triton.jit
def _multiplier(bits: tl.tensor, rule_ptr: tl.tensor, dropped: tl.constexpr) -> tl.tensor:
    """Return the multipliers, float32, of channels whose largest magnitudes, float32, have these bits, int64."""
    unit, even = tl.load(rule_ptr), tl.load(rule_ptr + 1)
    size = bits.to(tl.int32).to(tl.float32, bitcast=True).to(tl.float64)
    exact = tl.where(bits > 0, unit / tl.where(bits > 0, size, 1.0), even)
    return _rounded(exact, dropped, tl.load(rule_ptr + 2), tl.load(rule_ptr + 3))


@triton.jit
def multipliers(
    scales_ptr: tl.tensor, rule_ptr: tl.tensor, channel: tl.tensor, inside: tl.tensor, scale_dropped: tl.constexpr
) -> tl.tensor:
    """Return the multipliers of channels, float32, one outside; ``scales_ptr`` has them, or largest magnitudes."""
    if scale_dropped:
        return _multiplier(tl.load(scales_ptr + channel, mask=inside, other=0), rule_ptr, scale_dropped)
    else:
        return tl.load(scales_ptr + channel, mask=inside, other=1.0)


@triton.jit
def settle(
    largest_ptr: tl.tensor,
    rule_ptr: tl.tensor,
    moments_ptr: tl.tensor,
    r_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    channels: tl.tensor,
    values: tl.tensor,
    scale_dropped: tl.constexpr,
) -> None:
    """Leave the reciprocals and marks of a program's share of the channels; nothing where multipliers were given."""
    if scale_dropped:
        channel = tl.program_id(0).to(tl.int64) * _CHANNELS_OF_PROGRAM + tl.arange(0, _CHANNELS_OF_PROGRAM)
        inside = channel < channels
        bits = tl.load(largest_ptr + channel, mask=inside, other=0)
        limit, greatest = tl.load(rule_ptr + 4), tl.load(rule_ptr + 5)
        size = bits.to(tl.int32).to(tl.float32, bitcast=True).to(tl.float64)
        k = _multiplier(bits, rule_ptr, scale_dropped).to(tl.float64)
        r = _rounded(1.0 / k, _RECIPROCAL_DROPPED, tl.load(rule_ptr + 2), tl.load(rule_ptr + 3))
        # Rounding may move the code of the largest finite number beyond it. A half is rounded to the even number below.
        r = tl.where((size * k > VALUE_MAX - 0.5) & (r.to(tl.float64) > limit), greatest.to(tl.float32), r)
        tl.store(r_ptr + channel, r, mask=inside)
        means = tl.load(moments_ptr + channel, mask=inside, other=0)
        whole = tl.load(moments_ptr + channels + channel, mask=inside, other=0)
        share, least_square, most_square = tl.load(rule_ptr + 6), tl.load(rule_ptr + 7), tl.load(rule_ptr + 8)
        square = whole / values
        sure = (square >= least_square) & (square <= most_square) & (means <= share * whole)
        unsure = inside & ~(sure | ((whole == 0) & (means == 0)))
        if tl.max(inside.to(tl.int32), axis=0) > 0:
            tl.atomic_max(marks_ptr + NOT_FINITE, tl.max((bits >= INFINITY).to(tl.int64), axis=0), sem="relaxed")
            tl.atomic_max(marks_ptr + UNSURE, tl.max(unsure.to(tl.int64), axis=0), sem="relaxed")


@triton.jit
def _settle_kernel(
    largest_ptr: tl.tensor,
    rule_ptr: tl.tensor,
    moments_ptr: tl.tensor,
    r_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    channels: tl.tensor,
    values: tl.tensor,
    scale_dropped: tl.constexpr,
) -> None:
    settle(largest_ptr, rule_ptr, moments_ptr, r_ptr, marks_ptr, channels, values, scale_dropped)


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
    """Return the numbers of the rule that kernels read, float64; UserError for settings that the golden model refuses."""
    sfpr.check_scales(S, scale_bits)
    bounds = (2.0**-SCALE_EXPONENT_LIMIT, 2.0**SCALE_EXPONENT_LIMIT, *sfpr.reciprocal_limits(dtype))
    numbers = (SCALE_UNIT * float(S), float(SCALE_UNIT), *bounds, SURE_SHARE, LEAST_SQUARE, MOST_SQUARE)
    return torch.tensor(numbers, dtype=torch.float64, device=device)


def statistics(channels: Tensor, S: float, scale_bits: int, blocks: int = 0) -> Scales:  # noqa: N803
    """Return the statistics of contiguous (outer, channels, inner), for :func:`actcodec.golden.sfpr.scales`, without waiting.

    Marks have places for the sums of the lengths of ``blocks``.
    """
    outer, count, inner = channels.shape
    by_column = inner == 1
    values = min(outer, _PIECE_ROWS) if by_column else min(inner, _PIECE_VALUES)
    maps, per_map = (programs_for(outer, values), 1) if by_column else (outer, programs_for(inner, values))
    pieces, device = maps * count * per_map, channels.device
    largest, moments = zeros(count, device), zeros(2 * count, device).view(torch.float64)
    # Neighbours in memory are neighbours in a tile.
    side = tile_of(count if by_column else values)
    shape = dict(zip(side, reversed(side.values()), strict=True)) if by_column else side
    sizes = (pieces, count, inner, per_map, values, outer)
    programs = programs_for(pieces, shape["tile_rows"])
    launch(_statistics_kernel, programs, bits_of(channels), largest, moments, *sizes, by_column=by_column, **shape)
    r, marks = torch.empty(count, dtype=torch.float32, device=device), zeros(marks_for(blocks), device)
    rule = _rule(S, scale_bits, channels.dtype, device)
    return Scales(largest, rule, moments, r, marks, outer * inner, _SIGNIFICAND_BITS - scale_bits)


def settled(found: Scales) -> Scales:
    """Leave reciprocals and marks by a launch of its own."""
    count = found.channels
    launch(_settle_kernel, programs_for(count, _CHANNELS), *found.tensors, count, found.values, scale_dropped=found.dropped)
    return found


def near_zero_marks(channels: Tensor) -> Tensor:
    """Return the marks of contiguous (outer, channels, inner), as :func:`size_of` takes them."""
    return settled(statistics(channels, DEFAULT_S, max(SCALE_BITS))).marks


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
