"""Arithmetic of ``actnn-sample`` by kernels: float32, one operation after the other, in the order of the torch version."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import torch
import triton
import triton.language as tl
from cdu_spec import geometry, randomness
from torch import Tensor

from actcodec.backends.triton.affine import beats, load_codes, per_row, random_bits, store_codes
from actcodec.backends.triton.constants import INFINITY, LANES
from actcodec.backends.triton.launch import PROGRAM_VALUES, bits_of, launch, programs_for, tile_of
from actcodec.backends.triton.values import magnitude_bits, number, rounded
from actcodec.backends.triton.zeros import zeros
from actcodec.golden.floating.groups import coded_by, sample_count, sample_size

_TILE_BEATS = PROGRAM_VALUES // geometry.LANES
_PART = tl.constexpr(2.0**-randomness.WORD_BITS)
#: Bits of bfloat16's smallest normal number.
_SMALLEST = tl.constexpr(int(torch.tensor(torch.finfo(torch.bfloat16).smallest_normal, dtype=torch.bfloat16).view(torch.int16)))
#: Number of values above which places do not fit 32 bits, whose divisions are several times as fast.
_MOST_PLACES = 1 << 31


@triton.jit
def _up(x: tl.tensor) -> tl.tensor:
    """Return the bits, int16, of the least bfloat16 that is no less than each float32 number; infinite ones stay so."""
    bits = x.to(tl.int32, bitcast=True)
    return ((bits + tl.where((x > 0) & (x < float("inf")), 0xFFFF, 0)) >> 16).to(tl.int16)


@triton.jit
def _steps(
    x: tl.tensor,
    low: tl.tensor,
    extent: tl.tensor,
    levels: tl.tensor,
    seed: tl.tensor,
    beat: tl.tensor,
    stochastic: tl.constexpr,
) -> tl.tensor:
    """Return codes, int32 (n, 8), of values with these ranges and greatest codes, float32, in beats of the tensor, (n,)."""
    steps = tl.div_rn(x - low, extent) * levels
    # The quotient is not negative, so that conversion to integers rounds down.
    if stochastic:
        whole = steps.to(tl.int32)
        # Thresholds are the middles of equal parts of 0..1; the product is exact.
        thresholds = (random_bits(seed, beat).to(tl.float32) + 0.5) * _PART
        whole += (steps - whole.to(tl.float32) > thresholds).to(tl.int32)
    else:
        whole = (steps + 0.5).to(tl.int32)
    return tl.minimum(whole, levels.to(tl.int32))


@triton.jit(do_not_specialize=["seed"])
def _ranges_kernel(
    x_ptr: tl.tensor,
    low_ptr: tl.tensor,
    extent_ptr: tl.tensor,
    unfit_ptr: tl.tensor,
    bits_ptr: tl.tensor,
    codes_ptr: tl.tensor,
    groups: tl.tensor,
    per_sample: tl.tensor,
    size: tl.tensor,
    group: tl.tensor,
    seed: tl.tensor,
    stochastic: tl.constexpr,
    width: tl.constexpr,
    levels: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    """Store ranges and, with a width, the bits of samples, and codes of groups that begin and end with a byte."""
    row = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    within = row % per_sample * group
    count = tl.where(row < groups, tl.minimum(size - within, group), 0)
    first = (row // per_sample * size + within)[:, None]
    least = tl.full((tile_rows,), float("inf"), tl.float32)
    greatest = tl.full((tile_rows,), float("-inf"), tl.float32)
    largest = tl.zeros((tile_rows,), tl.int32)
    place, most = tl.arange(0, tile_columns).to(tl.int64), tl.max(count, axis=0)
    while tl.min(place, axis=0) < most:
        inside = place[None, :] < count[:, None]
        x = number(tl.load(x_ptr + first + place[None, :], mask=inside, other=0))
        least = tl.minimum(least, tl.min(tl.where(inside, x, float("inf")), axis=1))
        greatest = tl.maximum(greatest, tl.max(tl.where(inside, x, float("-inf")), axis=1))
        largest = tl.maximum(largest, tl.max(magnitude_bits(x), axis=1))
        place += tile_columns
    # The greatest number below is the least one above with the other sign; there is no -0.0.
    low = _up(-least) ^ -0x8000
    low = tl.where(least == 0, 0, low).to(tl.int16)
    extent = tl.maximum(_up(greatest - number(low)), _SMALLEST).to(tl.int16)
    tl.store(low_ptr + row, low, mask=row < groups)
    tl.store(extent_ptr + row, extent, mask=row < groups)
    ends = tl.maximum(magnitude_bits(number(low)), magnitude_bits(number(extent)))
    unfit = (row < groups) & (tl.maximum(largest, ends) >= INFINITY)
    tl.atomic_max(unfit_ptr, tl.max(unfit.to(tl.int64), axis=0), sem="relaxed")
    if width:
        tl.store(bits_ptr + row // per_sample, tl.full((tile_rows,), width, tl.uint8), mask=(row < groups) & (within == 0))
        across: tl.constexpr = tile_columns // LANES
        last = per_row((row // per_sample * size + within) + count, across)
        beat_place = tl.arange(0, across).to(tl.int64) * LANES
        while tl.min(beat_place, axis=0) < most:
            begin = tl.reshape(first + beat_place[None, :], (tile_rows * across,))
            at = begin[:, None] + tl.arange(0, LANES)[None, :]
            x = number(tl.load(x_ptr + at, mask=at < last, other=0))
            greatest_code = tl.full(x.shape, levels, tl.float32)
            span = per_row(number(low), across), per_row(number(extent), across)
            codes = _steps(x, span[0], span[1], greatest_code, seed, begin // LANES, stochastic)
            store_codes(codes_ptr, begin // LANES * width, codes.to(tl.int64), at < last, width)
            beat_place += tile_columns


@triton.jit
def _places(size: tl.tensor, group: tl.tensor, integers: tl.constexpr, tile_beats: tl.constexpr) -> tl.tensor:
    """Return the places of a program's values (n, 8), their samples, and their groups."""
    at = beats(tile_beats).to(integers)[:, None] * LANES + tl.arange(0, LANES)[None, :]
    sample = at // size
    return at, sample, sample * tl.cdiv(size, group) + at % size // group


@triton.jit
def _bytes_of(row: tl.tensor, count: tl.tensor, bits: tl.constexpr) -> tl.tensor:
    """Return which of the bytes of rows (n,) of 8 codes hold some of the first ``count`` codes, (n, 8)."""
    return tl.arange(0, LANES)[None, :] * LANES < (count - row[:, None] * LANES) * bits


@triton.jit
def _store_packed(
    packed_ptr: tl.tensor, codes: tl.tensor, count: tl.tensor, bits: tl.constexpr, tile_beats: tl.constexpr
) -> None:
    """Store a program's codes, int64 (n, 8), zeros from ``count`` on, without gaps."""
    row = beats(tile_beats)
    store_codes(packed_ptr, row * bits, codes, _bytes_of(row, count, bits), bits)


@triton.jit
def _load_packed(packed_ptr: tl.tensor, count: tl.tensor, bits: tl.constexpr, tile_beats: tl.constexpr) -> tl.tensor:
    """Return a program's codes, int32 (n, 8); inverse of :func:`_store_packed`."""
    row = beats(tile_beats)
    return load_codes(packed_ptr, row * bits, _bytes_of(row, count, bits), bits)


@triton.jit(do_not_specialize=["seed"])
def _codes_kernel(
    x_ptr: tl.tensor,
    low_ptr: tl.tensor,
    extent_ptr: tl.tensor,
    bits_ptr: tl.tensor,
    codes_ptr: tl.tensor,
    count: tl.tensor,
    size: tl.tensor,
    group: tl.tensor,
    seed: tl.tensor,
    stochastic: tl.constexpr,
    width: tl.constexpr,
    integers: tl.constexpr,
    tile_beats: tl.constexpr,
) -> None:
    at, sample, number_of_group = _places(size, group, integers, tile_beats)
    x = number(tl.load(x_ptr + at, mask=at < count, other=0))
    low = number(tl.load(low_ptr + number_of_group, mask=at < count, other=0))
    extent = number(tl.load(extent_ptr + number_of_group, mask=at < count, other=_SMALLEST))
    levels = ((1 << tl.load(bits_ptr + sample, mask=at < count, other=1).to(tl.int32)) - 1).to(tl.float32)
    codes = _steps(x, low, extent, levels, seed, beats(tile_beats), stochastic)
    if width:
        _store_packed(codes_ptr, codes.to(tl.int64), count, width, tile_beats)
    else:
        tl.store(codes_ptr + at, codes.to(tl.uint8), mask=at < count)


@triton.jit
def _values_kernel(
    codes_ptr: tl.tensor,
    low_ptr: tl.tensor,
    extent_ptr: tl.tensor,
    bits_ptr: tl.tensor,
    y_ptr: tl.tensor,
    count: tl.tensor,
    size: tl.tensor,
    group: tl.tensor,
    limit: tl.constexpr,
    width: tl.constexpr,
    integers: tl.constexpr,
    tile_beats: tl.constexpr,
) -> None:
    at, sample, number_of_group = _places(size, group, integers, tile_beats)
    if width:
        codes = _load_packed(codes_ptr, count, width, tile_beats).to(tl.float32)
    else:
        codes = tl.load(codes_ptr + at, mask=at < count, other=0).to(tl.float32)
    low = number(tl.load(low_ptr + number_of_group, mask=at < count, other=0))
    extent = number(tl.load(extent_ptr + number_of_group, mask=at < count, other=_SMALLEST))
    levels = ((1 << tl.load(bits_ptr + sample, mask=at < count, other=1).to(tl.int32)) - 1).to(tl.float32)
    values = tl.div_rn(codes, levels) * extent + low
    values = tl.minimum(tl.maximum(values, -limit), limit)
    tl.store(y_ptr + at, rounded(values, y_ptr.dtype.element_ty), mask=at < count)


@triton.jit
def _pack_kernel(
    codes_ptr: tl.tensor, packed_ptr: tl.tensor, count: tl.tensor, bits: tl.constexpr, tile_beats: tl.constexpr
) -> None:
    at = beats(tile_beats)[:, None] * LANES + tl.arange(0, LANES)[None, :]
    _store_packed(packed_ptr, tl.load(codes_ptr + at, mask=at < count, other=0).to(tl.int64), count, bits, tile_beats)


@triton.jit
def _unpack_kernel(
    packed_ptr: tl.tensor, codes_ptr: tl.tensor, count: tl.tensor, bits: tl.constexpr, tile_beats: tl.constexpr
) -> None:
    at = beats(tile_beats)[:, None] * LANES + tl.arange(0, LANES)[None, :]
    codes = _load_packed(packed_ptr, count, bits, tile_beats)
    tl.store(codes_ptr + at, codes.to(tl.uint8), mask=at < count)


def _places_of(count: int, size: int, group: int) -> tuple[int, tuple[int, int, int], dict[str, object]]:
    """Return the number of programs for these values, and the size and form of their computation."""
    integers = tl.int64 if count + PROGRAM_VALUES > _MOST_PLACES else tl.int32
    return programs_for(count, PROGRAM_VALUES), (count, size, group), {"integers": integers, "tile_beats": _TILE_BEATS}


def ranges(x: Tensor, group: int) -> tuple[Tensor, Tensor, Tensor]:
    """Compute :func:`actcodec.golden.floating.groups.ranges`."""
    low, extent, unfit, _, _ = _ranges(x, group, 0, None)
    return low, extent, unfit


def coded(x: Tensor, group: int, width: int, seed: int | None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Compute :func:`actcodec.golden.floating.groups.coded`, in one launch if groups and samples are whole rows of 8 values."""
    if group % geometry.LANES or sample_size(x.shape) % geometry.LANES:
        return coded_by(ranges, packed_codes, x, group, width, seed)
    return _ranges(x, group, width, seed)


def _ranges(x: Tensor, group: int, width: int, seed: int | None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return ranges, the number that tells of unfit values and, with a width, bits of samples and packed codes."""
    samples, size = sample_count(x.shape), sample_size(x.shape)
    per_sample = programs_for(size, group)
    low, extent = torch.empty(2, samples, per_sample, dtype=torch.bfloat16, device=x.device)
    bits, packed = torch.empty(samples, dtype=torch.uint8, device=x.device), _room(x.numel(), width, x.device)
    unfit = zeros(1, x.device)
    shape = tile_of(min(group, size))
    programs = programs_for(samples * per_sample, shape["tile_rows"])
    tensors = (bits_of(x.contiguous()), bits_of(low), bits_of(extent), unfit, bits, packed)
    layout = (samples * per_sample, per_sample, size, group, seed or 0)
    quantizer = {"stochastic": seed is not None, "width": width, "levels": float((1 << width) - 1)}
    launch(_ranges_kernel, programs, *tensors, *layout, **quantizer, **shape)
    return low, extent, unfit, bits, packed


def codes(x: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, seed: int | None) -> Tensor:
    """Compute :func:`actcodec.golden.floating.groups.codes`."""
    codes = torch.empty(sample_count(x.shape), sample_size(x.shape), dtype=torch.uint8, device=x.device)
    return _codes(x, group, low, extent, bits, seed, codes, 0)


def packed_codes(x: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, seed: int | None, width: int) -> Tensor:
    """Compute :func:`actcodec.golden.floating.groups.packed_codes`."""
    return _codes(x, group, low, extent, bits, seed, _room(x.numel(), width, x.device), width)


def _codes(
    x: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, seed: int | None, codes: Tensor, width: int
) -> Tensor:
    ranges = (bits_of(low), bits_of(extent), bits)
    programs, layout, form = _places_of(x.numel(), sample_size(x.shape), group)
    random = {"seed": seed or 0, "stochastic": seed is not None}
    launch(_codes_kernel, programs, bits_of(x.contiguous()), *ranges, codes, *layout, width=width, **random, **form)
    return codes


def values(
    codes: Tensor, group: int, low: Tensor, extent: Tensor, bits: Tensor, shape: Sequence[int], dtype: torch.dtype
) -> Tensor:
    """Compute :func:`actcodec.golden.floating.groups.values`."""
    return values_of_packed(codes, 0, group, low, extent, bits, shape, dtype)


def values_of_packed(
    packed: Tensor,
    width: int,
    group: int,
    low: Tensor,
    extent: Tensor,
    bits: Tensor,
    shape: Sequence[int],
    dtype: torch.dtype,
) -> Tensor:
    """Compute :func:`actcodec.golden.floating.groups.values_of_packed`; with a width of 0, of codes in bytes."""
    y = torch.empty(tuple(shape), dtype=dtype, device=packed.device)
    ranges = (bits_of(low), bits_of(extent), bits)
    programs, layout, form = _places_of(y.numel(), sample_size(shape), group)
    form["limit"] = inf if dtype == torch.float32 else torch.finfo(dtype).max
    launch(_values_kernel, programs, packed.contiguous(), *ranges, bits_of(y), *layout, width=width, **form)
    return y


def _room(count: int, bits: int, device: torch.device) -> Tensor:
    """Return memory for packed codes."""
    return torch.empty(-(-count * bits // geometry.LANES), dtype=torch.uint8, device=device)


def pack(codes: Tensor, bits: int) -> Tensor:
    """Compute :func:`actcodec.golden.codes.pack_tight`."""
    packed = _room(codes.numel(), bits, codes.device)
    programs = programs_for(codes.numel(), PROGRAM_VALUES)
    launch(_pack_kernel, programs, codes.contiguous(), packed, codes.numel(), bits=bits, tile_beats=_TILE_BEATS)
    return packed


def unpack(packed: Tensor, bits: int, count: int) -> Tensor:
    """Compute :func:`actcodec.golden.codes.unpack_tight`."""
    codes = torch.empty(count, dtype=torch.uint8, device=packed.device)
    programs = programs_for(count, PROGRAM_VALUES)
    launch(_unpack_kernel, programs, packed.contiguous(), codes, count, bits=bits, tile_beats=_TILE_BEATS)
    return codes
