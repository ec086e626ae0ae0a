"""Arithmetic of MX and NVFP4 by kernels: that of :mod:`actcodec.golden.mx` and ``nvfp4``, operation by operation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
import triton
import triton.language as tl
from cdu_spec import mx as spec
from cdu_spec.geometry import LANES as ROW_VALUES
from cdu_spec.mx import NVFP4_FORMAT, NVFP4_SCALE, BlockFormat, ScaleRule
from torch import Tensor

from actcodec.backends.triton.affine import beats, load_codes, per_row, store_codes
from actcodec.backends.triton.constants import INFINITY, LANES
from actcodec.backends.triton.launch import PROGRAM_VALUES, bits_of, launch, programs_for
from actcodec.backends.triton.values import magnitude_bits, number, rounded
from actcodec.golden import nvfp4
from actcodec.golden.mx import blocks_of, minifloat, numbers

#: Fraction bits of a float32, its exponents' bias, and the pattern of the greatest fraction.
_FRACTION, _BIAS, _FRACTIONS = tl.constexpr(23), tl.constexpr(127), tl.constexpr((1 << 23) - 1)
_MAGNITUDE, _QUIET_NAN, _QUIET_HALF = tl.constexpr(0x7FFFFFFF), tl.constexpr(0x7FC00000), tl.constexpr(0x7E00)
#: Summand that leaves no bits for fractions.
_SHIFTER = tl.constexpr(1.5 * 2.0**23)
_SCALE_MOST, _SCALE_NAN = tl.constexpr(spec.SCALE_MOST), tl.constexpr(spec.SCALE_NAN)
_SCALE_BIAS = tl.constexpr(spec.SCALE_BIAS)
#: Number by which the largest magnitude is divided for the scale of a tensor, and the least scale.
_WHOLE = tl.constexpr(nvfp4.GREATEST_SCALE * nvfp4.GREATEST)
_LEAST_TENSOR = tl.constexpr(nvfp4.LEAST_TENSOR_SCALE)
_GREATEST, _LEAST_SCALE = tl.constexpr(nvfp4.GREATEST), tl.constexpr(nvfp4.LEAST_SCALE)
_GREATEST_SCALE = tl.constexpr(nvfp4.GREATEST_SCALE)


@triton.jit
def _element_codes(scaled: tl.tensor, whole: tl.constexpr, element: tl.constexpr) -> tl.tensor:
    """Return codes, int32, of float32 numbers, rounded to nearest with ties to even, and limited.

    ``whole`` is True for integers; ``element`` is a form (:func:`_element`).
    """
    if whole:
        steps = tl.minimum(tl.maximum(scaled * element[0], -element[1]), element[1])
        return ((steps + _SHIFTER) - _SHIFTER).to(tl.int32) & 0xFF
    else:
        dropped: tl.constexpr = element[0]
        patterns = scaled.to(tl.int32, bitcast=True)
        magnitudes = patterns & _MAGNITUDE
        normal = (((magnitudes >> dropped) & 1) + magnitudes + element[2]) >> dropped
        normal = tl.minimum(normal - element[3], element[1])
        # A sum with this number has the format's smallest step as its last bit: the adder rounds.
        limited = tl.minimum(magnitudes, element[4]).to(tl.float32, bitcast=True)
        subnormal = (limited + element[5]).to(tl.int32, bitcast=True) - element[6]
        return tl.maximum(normal, subnormal) | ((patterns >> element[7]) & element[8])


@triton.jit
def _power_of_two(exponent: tl.tensor) -> tl.tensor:
    """Return powers of two, float32, of exponents -127 to 127; the smallest power is subnormal."""
    patterns = tl.where(exponent < 1 - _BIAS, 1 << 22, (exponent + _BIAS) << _FRACTION)
    return patterns.to(tl.float32, bitcast=True)


@triton.jit
def _flushed(x: tl.tensor) -> tl.tensor:
    """Turn subnormal float32 numbers into zeros of the same sign."""
    patterns = x.to(tl.int32, bitcast=True)
    return tl.where((patterns & _MAGNITUDE) > _FRACTIONS, patterns, patterns & ~_MAGNITUDE).to(tl.float32, bitcast=True)


@triton.jit
def _largest(x: tl.tensor, tile_blocks: tl.constexpr) -> tl.tensor:
    """Return the bits of the largest magnitude of each block, int32, from rows of 8 values."""
    return tl.max(tl.reshape(magnitude_bits(x), (tile_blocks, x.shape[0] // tile_blocks * LANES)), axis=1)


@triton.jit
def _store_blocks(
    payload_ptr: tl.tensor,
    scales: tl.tensor,
    codes: tl.tensor,
    count: tl.tensor,
    bits: tl.constexpr,
    rows: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    """Store a program's scales, int32 (n,), and codes, int32 (n * rows, 8), for blocks that have some of ``count`` values."""
    block = tl.program_id(0).to(tl.int64) * tile_blocks + tl.arange(0, tile_blocks)
    tl.store(payload_ptr + block * (1 + rows * bits), scales.to(tl.uint8), mask=block * rows * LANES < count)
    row = beats(tile_blocks * rows)
    at = row // rows * (1 + rows * bits) + 1 + row % rows * bits
    store_codes(payload_ptr, at, codes.to(tl.int64), (row // rows * rows * LANES < count)[:, None], bits)


@triton.jit
def _mx_codes_kernel(
    x_ptr: tl.tensor,
    payload_ptr: tl.tensor,
    count: tl.tensor,
    emax: tl.constexpr,
    limit: tl.constexpr,
    rceil: tl.constexpr,
    whole: tl.constexpr,
    element: tl.constexpr,
    bits: tl.constexpr,
    rows: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    at = beats(tile_blocks * rows)[:, None] * LANES + tl.arange(0, LANES)[None, :]
    x = _flushed(number(tl.load(x_ptr + at, mask=at < count, other=0)))
    largest = _largest(x, tile_blocks)
    scales = (largest >> _FRACTION) - emax
    if rceil:
        scales += ((largest & _FRACTIONS) > limit).to(tl.int32)
        scales = tl.where(largest == INFINITY, _SCALE_MOST, scales)
    scales = tl.minimum(tl.maximum(scales, 0), _SCALE_MOST)
    scales = tl.where(largest > INFINITY, _SCALE_NAN, scales)
    codes = _element_codes(x * per_row(_power_of_two(-(scales - _SCALE_BIAS)), rows), whole, element)
    codes = tl.where(per_row(scales, rows) == _SCALE_NAN, 0, codes)
    _store_blocks(payload_ptr, scales, codes, count, bits, rows, tile_blocks)


@triton.jit
def _nvfp4_codes_kernel(
    x_ptr: tl.tensor,
    largest_ptr: tl.tensor,
    scale_numbers_ptr: tl.tensor,
    scale_ptr: tl.tensor,
    payload_ptr: tl.tensor,
    count: tl.tensor,
    element: tl.constexpr,
    scale_element: tl.constexpr,
    bits: tl.constexpr,
    rows: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    most = tl.zeros((tile_blocks,), tl.float32) + tl.load(largest_ptr)
    tensor = tl.maximum(tl.div_rn(most, tl.full(most.shape, _WHOLE, tl.float32)), _LEAST_TENSOR)
    at = beats(tile_blocks * rows)[:, None] * LANES + tl.arange(0, LANES)[None, :]
    x = number(tl.load(x_ptr + at, mask=at < count, other=0))
    largest = _largest(x, tile_blocks).to(tl.float32, bitcast=True)
    wanted = tl.div_rn(tl.div_rn(largest, tl.full(most.shape, _GREATEST, tl.float32)), tensor)
    scales = _element_codes(tl.minimum(tl.maximum(wanted, _LEAST_SCALE), _GREATEST_SCALE), False, scale_element)
    factors = tl.div_rn(tl.div_rn(tl.full(most.shape, 1.0, tl.float32), tensor), tl.load(scale_numbers_ptr + scales))
    codes = _element_codes(x * per_row(factors, rows), False, element)
    _store_blocks(payload_ptr, scales, codes, count, bits, rows, tile_blocks)
    first = tl.program_id(0) + tl.arange(0, tile_blocks)
    tl.store(scale_ptr + first, tensor, mask=first == 0)


@triton.jit
def _values_kernel(
    payload_ptr: tl.tensor,
    scale_ptr: tl.tensor,
    numbers_ptr: tl.tensor,
    scale_numbers_ptr: tl.tensor,
    y_ptr: tl.tensor,
    count: tl.tensor,
    most: tl.constexpr,
    powers: tl.constexpr,
    bits: tl.constexpr,
    rows: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    row = beats(tile_blocks * rows)
    at = row[:, None] * LANES + tl.arange(0, LANES)[None, :]
    inside = (row // rows * rows * LANES < count)[:, None]
    codes = load_codes(payload_ptr, row // rows * (1 + rows * bits) + 1 + row % rows * bits, inside, bits)
    scale = tl.load(payload_ptr + (row // rows * (1 + rows * bits))[:, None], mask=inside, other=0).to(tl.int32)
    values = tl.load(numbers_ptr + codes)
    if powers:
        values = values * _power_of_two(tl.minimum(scale, _SCALE_MOST) - _SCALE_BIAS)
        values = tl.where(scale == _SCALE_NAN, float("nan"), _flushed(values))
    else:
        values = values * (tl.load(scale_ptr) * tl.load(scale_numbers_ptr + scale))
    is_nan = values != values
    values = tl.minimum(tl.maximum(tl.where(is_nan, 0.0, values), -most), most)
    if y_ptr.dtype.element_ty == tl.float16:
        patterns = tl.where(is_nan, _QUIET_HALF, values.to(tl.float16).to(tl.int16, bitcast=True).to(tl.int32))
        tl.store(y_ptr + at, patterns.to(tl.int16).to(tl.float16, bitcast=True), mask=at < count)
    else:
        patterns = tl.where(is_nan, _QUIET_NAN, values.to(tl.int32, bitcast=True))
        tl.store(y_ptr + at, rounded(patterns.to(tl.float32, bitcast=True), y_ptr.dtype.element_ty), mask=at < count)


@lru_cache
def _element(kind: BlockFormat) -> tuple[int | float, ...]:
    """Return the form of elements as :func:`_element_codes` takes it."""
    if kind.is_integer:
        return 2.0**kind.fraction_bits, float(kind.greatest)
    dropped, rebias = _FRACTION.value - kind.fraction_bits, _BIAS.value - minifloat(kind).bias
    adder = torch.tensor(2.0 ** (kind.emin - kind.fraction_bits + _FRACTION.value), dtype=torch.float32)
    least = ((rebias + 1) << _FRACTION.value, float(adder), int(adder.view(torch.int32)))
    half, sign = (1 << dropped - 1) - 1, (32 - kind.bits, 1 << kind.bits - 1)
    return dropped, kind.greatest, half, rebias << kind.fraction_bits, *least, *sign


@lru_cache
def _numbers(kind: BlockFormat, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return numbers(kind).to(device)


def _form(kind: BlockFormat) -> dict[str, int]:
    return {"bits": kind.bits, "rows": kind.values // ROW_VALUES, "tile_blocks": PROGRAM_VALUES // kind.values}


def _payload(x: Tensor, kind: BlockFormat) -> Tensor:
    return torch.empty(programs_for(x.numel(), kind.values) * kind.block_bytes, dtype=torch.uint8, device=x.device)


def mx_codes(x: Tensor, kind: BlockFormat, rule: ScaleRule) -> Tensor:
    """Compute :func:`actcodec.golden.floating.blocks.mx_codes`."""
    payload, limit = _payload(x, kind), kind.greatest_fraction << (_FRACTION.value - kind.fraction_bits)
    scaling = {"emax": kind.emax, "limit": limit, "rceil": rule is ScaleRule.RCEIL}
    form = {"whole": kind.is_integer, "element": _element(kind), **_form(kind)}
    programs = programs_for(x.numel(), PROGRAM_VALUES)
    launch(_mx_codes_kernel, programs, bits_of(x.contiguous()), payload, x.numel(), **scaling, **form)
    return payload


def mx_values(payload: Tensor, kind: BlockFormat, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Compute :func:`actcodec.golden.floating.blocks.mx_values`."""
    y = torch.empty(tuple(shape), dtype=dtype, device=payload.device)
    decode_mx(blocks_of(payload, y.numel(), kind), kind, y)
    return y


def decode_mx(payload: Tensor, kind: BlockFormat, y: Tensor) -> None:
    """Decode a payload to ``y``, a contiguous tensor with as many values."""
    table = _numbers(kind, payload.device)
    _decode(payload, table, table, table, y, kind, powers=True)


def nvfp4_codes(x: Tensor, largest: Tensor) -> tuple[Tensor, Tensor]:
    """Compute :func:`actcodec.golden.floating.blocks.nvfp4_codes`."""
    payload, scale = _payload(x, NVFP4_FORMAT), torch.empty((), dtype=torch.float32, device=x.device)
    tensors = (bits_of(x.contiguous()), largest, _numbers(NVFP4_SCALE, x.device), scale, payload)
    elements = {"element": _element(NVFP4_FORMAT), "scale_element": _element(NVFP4_SCALE)}
    programs = programs_for(x.numel(), PROGRAM_VALUES)
    launch(_nvfp4_codes_kernel, programs, *tensors, x.numel(), **elements, **_form(NVFP4_FORMAT))
    return payload, scale


def nvfp4_values(payload: Tensor, scale: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Compute :func:`actcodec.golden.floating.blocks.nvfp4_values`."""
    y = torch.empty(tuple(shape), dtype=dtype, device=payload.device)
    blocks = blocks_of(payload, y.numel(), NVFP4_FORMAT)
    tables = (_numbers(NVFP4_FORMAT, payload.device), _numbers(NVFP4_SCALE, payload.device))
    _decode(blocks, scale, *tables, y, NVFP4_FORMAT, powers=False)
    return y


def _decode(
    payload: Tensor, scale: Tensor, table: Tensor, scales: Tensor, y: Tensor, kind: BlockFormat, *, powers: bool
) -> None:
    form = {"most": torch.finfo(y.dtype).max, "powers": powers, **_form(kind)}
    programs = programs_for(y.numel(), PROGRAM_VALUES)
    launch(_values_kernel, programs, payload.contiguous(), scale, table, scales, bits_of(y), y.numel(), **form)
