"""Mode sfpr, and the maxima from which scales follow: tiles of matrices with one scale per row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from actcodec.backends.triton.constants import VALUE_MAX, VALUE_MIN
from actcodec.backends.triton.launch import bits_of, launch, programs_for, tile_of
from actcodec.backends.triton.values import magnitude_bits, number, product, rounded, saturated


@triton.jit
def tile(columns: tl.tensor, tile_rows: tl.constexpr, tile_columns: tl.constexpr) -> tl.tensor:
    """Return rows (n, 1) and columns (1, m) of a program's tile, int64."""
    across = tl.cdiv(columns, tile_columns)
    program = tl.program_id(0).to(tl.int64)
    row = program // across * tile_rows + tl.arange(0, tile_rows)[:, None]
    column = program % across * tile_columns + tl.arange(0, tile_columns)[None, :]
    return row, column


def tiled(rows: int, columns: int) -> tuple[int, dict[str, int]]:
    """Return the number of programs for a matrix, and the size of their tiles as :func:`tile` takes it."""
    shape = tile_of(columns)
    return programs_for(rows, shape["tile_rows"]) * programs_for(columns, shape["tile_columns"]), shape


@triton.jit
def _maxima_kernel(
    x_ptr: tl.tensor,
    largest_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    channels: tl.tensor,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    row, column = tile(columns, tile_rows, tile_columns)
    x = tl.load(x_ptr + row * columns + column, mask=(row < rows) & (column < columns), other=0)
    largest = tl.max(magnitude_bits(number(x)), axis=1, keep_dims=True)
    tl.atomic_max(largest_ptr + row % channels, largest, mask=row < rows)


@triton.jit
def _encode_kernel(
    x_ptr: tl.tensor,
    k_ptr: tl.tensor,
    q_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    width: tl.tensor,
    count: tl.tensor,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    row, column = tile(width, tile_rows, tile_columns)
    x = number(tl.load(x_ptr + row * columns + column, mask=(row < rows) & (column < columns), other=0))
    k = tl.load(k_ptr + row % count, mask=row < rows, other=1.0)
    q = saturated(product(x, k), VALUE_MIN, VALUE_MAX)
    tl.store(q_ptr + row * width + column, q.to(tl.int8), mask=(row < rows) & (column < width))


@triton.jit
def _decode_kernel(
    q_ptr: tl.tensor,
    r_ptr: tl.tensor,
    y_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    width: tl.tensor,
    count: tl.tensor,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    row, column = tile(columns, tile_rows, tile_columns)
    inside = (row < rows) & (column < columns)
    q = tl.load(q_ptr + row * width + column, mask=inside, other=0)
    r = tl.load(r_ptr + row % count, mask=row < rows, other=1.0)
    y = rounded(q.to(tl.float32) * r, y_ptr.dtype.element_ty)
    tl.store(y_ptr + row * columns + column, y, mask=inside)


def maxima(channels: Tensor) -> Tensor:
    """Return the bits of the largest magnitude of each channel of (outer, channels, inner), a float32, as int32."""
    outer, count, inner = channels.shape
    largest = torch.zeros(count, dtype=torch.int32, device=channels.device)
    programs, shape = tiled(outer * count, inner)
    launch(_maxima_kernel, programs, bits_of(channels), largest, outer * count, inner, count, **shape)
    return largest


def encode(x: Tensor, rows: int, columns: int, width: int, k: Tensor, q: Tensor) -> None:
    """Write integers of a matrix to ``q``, int8 (rows, width), zeros after the columns; rows have the multipliers in turn."""
    programs, shape = tiled(rows, width)
    launch(_encode_kernel, programs, bits_of(x), k, q, rows, columns, width, k.numel(), **shape)


def decode(q: Tensor, rows: int, columns: int, width: int, r: Tensor, y: Tensor) -> None:
    """Decode integers to ``y`` (rows, columns); inverse of :func:`encode`."""
    programs, shape = tiled(rows, columns)
    launch(_decode_kernel, programs, q, r, bits_of(y), rows, columns, width, r.numel(), **shape)
