"""Arithmetic of ``int8-rows`` by kernels: float32, one operation after the other, in the order of the torch version."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from actcodec.backends.triton.constants import INFINITY
from actcodec.backends.triton.launch import bits_of, launch, programs_for, tile_of
from actcodec.backends.triton.values import magnitude_bits, number, rounded, whole
from actcodec.backends.triton.zeros import zeros
from actcodec.golden.floating import scaled_rows

_FULL_SCALE = tl.constexpr(float(scaled_rows.FULL_SCALE))


@triton.jit
def _codes_kernel(
    x_ptr: tl.tensor,
    codes_ptr: tl.tensor,
    greatest_ptr: tl.tensor,
    unfit_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    first = (row * columns)[:, None]
    largest = tl.zeros((tile_rows,), tl.int32)
    place = tl.arange(0, tile_columns).to(tl.int64)
    while tl.min(place, axis=0) < columns:
        inside = (row < rows)[:, None] & (place < columns)[None, :]
        x = number(tl.load(x_ptr + first + place[None, :], mask=inside, other=0))
        largest = tl.maximum(largest, tl.max(magnitude_bits(x), axis=1))
        place += tile_columns
    greatest = largest.to(tl.float32, bitcast=True)
    tl.store(greatest_ptr + row, greatest, mask=row < rows)
    tl.atomic_max(unfit_ptr, tl.max((largest >= INFINITY).to(tl.int64), axis=0), sem="relaxed")
    divisor = tl.where((greatest > 0) & (largest < INFINITY), greatest, 1.0)[:, None]
    place = tl.arange(0, tile_columns).to(tl.int64)
    while tl.min(place, axis=0) < columns:
        inside = (row < rows)[:, None] & (place < columns)[None, :]
        x = number(tl.load(x_ptr + first + place[None, :], mask=inside, other=0))
        steps = tl.div_rn(x, tl.broadcast_to(divisor, x.shape)) * _FULL_SCALE
        steps = tl.where(tl.abs(steps) <= _FULL_SCALE, steps, 0.0)
        tl.store(codes_ptr + first + place[None, :], whole(steps.to(tl.float64)).to(tl.int8), mask=inside)
        place += tile_columns


@triton.jit
def _values_kernel(
    codes_ptr: tl.tensor,
    greatest_ptr: tl.tensor,
    y_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    first = (row * columns)[:, None]
    greatest = tl.load(greatest_ptr + row, mask=row < rows, other=0)[:, None]
    place = tl.arange(0, tile_columns).to(tl.int64)
    while tl.min(place, axis=0) < columns:
        inside = (row < rows)[:, None] & (place < columns)[None, :]
        codes = tl.load(codes_ptr + first + place[None, :], mask=inside, other=0).to(tl.float32)
        values = tl.div_rn(codes, tl.full(codes.shape, _FULL_SCALE, tl.float32)) * greatest
        tl.store(y_ptr + first + place[None, :], rounded(values, y_ptr.dtype.element_ty), mask=inside)
        place += tile_columns


def codes(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute :func:`actcodec.golden.floating.scaled_rows.codes`."""
    found = torch.empty_like(rows, dtype=torch.int8)
    greatest = rows.new_empty(len(rows), dtype=torch.float32)
    unfit, shape = zeros(1, rows.device), tile_of(rows.shape[1])
    programs = programs_for(len(rows), shape["tile_rows"])
    launch(_codes_kernel, programs, bits_of(rows.contiguous()), found, greatest, unfit, *rows.shape, **shape)
    return found, greatest, unfit


def values(codes: Tensor, greatest: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute :func:`actcodec.golden.floating.scaled_rows.values`."""
    y = torch.empty(codes.shape, dtype=dtype, device=codes.device)
    shape = tile_of(codes.shape[1])
    programs = programs_for(len(codes), shape["tile_rows"])
    launch(_values_kernel, programs, codes.contiguous(), greatest, bits_of(y), *codes.shape, **shape)
    return y
