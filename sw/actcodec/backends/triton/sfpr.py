"""Modes sfpr and sfpr+zvc, beats of rows with one scale each, and the maxima from which scales follow."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from cdu_spec import geometry
from cdu_spec.matrix_view import MatrixView
from torch import Tensor

from actcodec.backends.job import Job
from actcodec.backends.triton.affine import beat_places, beats
from actcodec.backends.triton.constants import LANES, SIDE, VALUE_MAX, VALUE_MIN
from actcodec.backends.triton.launch import PROGRAM_BLOCKS, bits_of, launch, programs_for, tile_of
from actcodec.backends.triton.lengths import Lengths, sums_of
from actcodec.backends.triton.values import magnitude_bits, number, product, rounded, saturated
from actcodec.backends.triton.zeros import zeros
from actcodec.backends.triton.zvc import measure, unpacked


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
    magnitudes = magnitude_bits(number(x)).to(tl.float32, bitcast=True).to(tl.float64)
    largest = tl.max(magnitudes.to(tl.int64, bitcast=True), axis=1, keep_dims=True)
    tl.atomic_max(largest_ptr + row % channels, largest, mask=row < rows, sem="relaxed")


@triton.jit
def _encode_kernel(
    x_ptr: tl.tensor,
    k_ptr: tl.tensor,
    q_ptr: tl.tensor,
    sums_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    count: tl.tensor,
    row_beats: tl.tensor,
    whole_beats: tl.tensor,
    group_units: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    beat = beats(tile_blocks * SIDE)
    row, column = beat_places(beat, row_beats)
    x = number(tl.load(x_ptr + row * columns + column, mask=(row < rows) & (column < columns), other=0))
    k = tl.load(k_ptr + row % count, mask=row < rows, other=1.0)
    q = saturated(product(x, k), VALUE_MIN, VALUE_MAX)
    place = beat[:, None] * LANES + tl.arange(0, LANES)[None, :]
    tl.store(q_ptr + place, q.to(tl.int8), mask=(beat < whole_beats)[:, None])
    block = tl.program_id(0).to(tl.int64) * tile_blocks + tl.arange(0, tile_blocks)
    measure(q, block, sums_ptr, marks_ptr, whole_beats // SIDE, group_units, tile_blocks)


@triton.jit
def _decode_kernel(
    q_ptr: tl.tensor,
    offsets_ptr: tl.tensor,
    r_ptr: tl.tensor,
    y_ptr: tl.tensor,
    size: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    count: tl.tensor,
    row_beats: tl.tensor,
    whole_beats: tl.tensor,
    in_masks: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    beat = beats(tile_blocks * SIDE)
    if in_masks:
        q = unpacked(q_ptr, offsets_ptr, size, whole_beats // SIDE, tile_blocks)
        q = tl.reshape(q, (tile_blocks * SIDE, LANES))
    else:
        place = beat[:, None] * LANES + tl.arange(0, LANES)[None, :]
        q = tl.load(q_ptr + place, mask=(beat < whole_beats)[:, None], other=0)
    row, column = beat_places(beat, row_beats)
    r = tl.load(r_ptr + row % count, mask=row < rows, other=1.0)
    y = rounded(q.to(tl.float32) * r, y_ptr.dtype.element_ty)
    tl.store(y_ptr + row * columns + column, y, mask=(row < rows) & (column < columns))


def maxima(channels: Tensor) -> Tensor:
    """Return the bits of the largest magnitude of each channel of (outer, channels, inner), a float64, as int64."""
    outer, count, inner = channels.shape
    largest = zeros(count, channels.device)
    programs, shape = tiled(outer * count, inner)
    launch(_maxima_kernel, programs, bits_of(channels), largest, outer * count, inner, count, **shape)
    return largest


def _layout(view: MatrixView, job: Job) -> tuple[int, ...]:
    return (view.rows, view.columns, job.scales.numel(), view.row_beats, view.beats)


def encode(x: Tensor, view: MatrixView, job: Job, lengths: Lengths | None = None) -> Tensor:
    """Return the integers of a tensor, int8 (values,), with its padding; rows have the multipliers of the job in turn.

    With ``lengths``, the kernel leaves those of the blocks that ZVC writes.
    """
    q = torch.empty(view.beats * geometry.LANES, dtype=torch.int8, device=x.device)
    measures, shape = sums_of(lengths, q)
    tensors = (bits_of(x), job.scales.to(x.device), q, *measures)
    programs = programs_for(view.beats, PROGRAM_BLOCKS * geometry.BLOCK_SIDE)
    launch(_encode_kernel, programs, *tensors, *_layout(view, job), tile_blocks=PROGRAM_BLOCKS, **shape)
    return q


def decode(q: Tensor, view: MatrixView, job: Job, y: Tensor, offsets: Tensor | None = None) -> None:
    """Decode integers to ``y``, a tensor of this view; inverse of :func:`encode`.

    With the offsets of units, ``q`` is a payload of ZVC.
    """
    tensors = (q, q if offsets is None else offsets, job.scales.to(q.device), bits_of(y))
    constants = {"in_masks": offsets is not None, "tile_blocks": PROGRAM_BLOCKS}
    programs = programs_for(view.beats, PROGRAM_BLOCKS * geometry.BLOCK_SIDE)
    launch(_decode_kernel, programs, *tensors, q.numel(), *_layout(view, job), **constants)
