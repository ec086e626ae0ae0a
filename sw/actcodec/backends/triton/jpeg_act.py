"""Mode jpeg-act without its coder: SFPR, 8x8 DCT and shift quantiser of blocks in one kernel, and their inverses."""

from __future__ import annotations

from functools import lru_cache

import torch
import triton
import triton.language as tl
from cdu_spec import geometry
from cdu_spec.coding import ShiftCoding, known
from cdu_spec.dct import pass_shifts
from cdu_spec.matrix_view import MatrixView
from cdu_spec.reconstruction import offsets as offsets_of
from cdu_spec.rounding import Rounding
from torch import Tensor

from actcodec.backends.job import Job
from actcodec.backends.transform import integer_basis, needs_64_bits
from actcodec.backends.triton.constants import (
    BLOCK_VALUES,
    COEFFICIENT_MAX,
    COEFFICIENT_MIN,
    LANES,
    SIDE,
    VALUE_MAX,
    VALUE_MIN,
)
from actcodec.backends.triton.launch import PROGRAM_BLOCKS, bits_of, launch, programs_for
from actcodec.backends.triton.lengths import Lengths, sums_of
from actcodec.backends.triton.values import clamped, number, product, rounded, saturated
from actcodec.backends.triton.zvc import measure, unpacked


@triton.jit
def block_rows(block: tl.tensor, per_strip: tl.tensor) -> tl.tensor:
    """Return rows and columns of the matrix for blocks (n,), (n, 8) each."""
    side = tl.arange(0, SIDE)[None, :]
    return (block // per_strip)[:, None] * SIDE + side, (block % per_strip)[:, None] * SIDE + side


@triton.jit
def table(table_ptr: tl.tensor, row_step: tl.constexpr, column_step: tl.constexpr) -> tl.tensor:
    """Load 64 numbers as (8, 8)."""
    return tl.load(table_ptr + tl.arange(0, SIDE)[:, None] * row_step + tl.arange(0, SIDE)[None, :] * column_step)


@triton.jit
def _places(block: tl.tensor) -> tl.tensor:
    """Return the places of the coefficients of blocks, (n, 8, 8)."""
    place = tl.arange(0, SIDE)[None, :, None] * LANES + tl.arange(0, LANES)[None, None, :]
    return block[:, None, None] * BLOCK_VALUES + place


@triton.jit
def _shifted(total: tl.tensor, shift: tl.constexpr) -> tl.tensor:
    """Divide by a power of two, rounded half up."""
    return (total + (1 << shift >> 1)) >> shift


@triton.jit
def forward_blocks(
    x_ptr: tl.tensor,
    k_ptr: tl.tensor,
    basis_ptr: tl.tensor,
    shifts_ptr: tl.tensor,
    q_ptr: tl.tensor,
    block: tl.tensor,
    layout: tl.tuple,
    first_shift: tl.constexpr,
    second_shift: tl.constexpr,
    half_away: tl.constexpr,
) -> tl.tensor:
    """Store the quantised coefficients of blocks, int64 (n,), and return them, int8 (n, 8, 8)."""
    rows, columns, channel_rows, count, per_strip, blocks = layout
    row, column = block_rows(block, per_strip)
    at = row[:, :, None] * columns + column[:, None, :]
    inside = (row < rows)[:, :, None] & (column < columns)[:, None, :]
    k = tl.load(k_ptr + row // channel_rows % count, mask=row < rows, other=1.0)[:, :, None]
    samples = saturated(product(number(tl.load(x_ptr + at, mask=inside, other=0)), k), VALUE_MIN, VALUE_MAX)
    # Axes: block, row, horizontal frequency; then block, horizontal frequency, vertical frequency.
    waves = table(basis_ptr, SIDE, 1)
    between = _shifted(tl.sum(samples[:, :, None, :] * waves[None, None, :, :], axis=3), first_shift)
    waves = table(basis_ptr, 1, SIDE)
    coefficients = _shifted(tl.sum(between[:, :, :, None] * waves[None, :, None, :], axis=1), second_shift)
    shifts = table(shifts_ptr, LANES, 1).to(tl.int32)[None, :, :]
    sizes = tl.abs(coefficients)
    if half_away:
        sizes += (1 << shifts) >> 1
    sizes = sizes >> shifts
    q = clamped(tl.where(coefficients < 0, -sizes, sizes), VALUE_MIN, VALUE_MAX).to(tl.int8)
    tl.store(q_ptr + _places(block), q, mask=(block < blocks)[:, None, None])
    return q


@triton.jit
def _forward_kernel(
    x_ptr: tl.tensor,
    k_ptr: tl.tensor,
    basis_ptr: tl.tensor,
    shifts_ptr: tl.tensor,
    q_ptr: tl.tensor,
    sums_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    channel_rows: tl.tensor,
    count: tl.tensor,
    per_strip: tl.tensor,
    blocks: tl.tensor,
    first_shift: tl.constexpr,
    second_shift: tl.constexpr,
    half_away: tl.constexpr,
    group_units: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    block = tl.program_id(0).to(tl.int64) * tile_blocks + tl.arange(0, tile_blocks)
    layout = (rows, columns, channel_rows, count, per_strip, blocks)
    q = forward_blocks(x_ptr, k_ptr, basis_ptr, shifts_ptr, q_ptr, block, layout, first_shift, second_shift, half_away)
    measure(q, block, sums_ptr, marks_ptr, blocks, group_units, tile_blocks)


@triton.jit
def load_blocks(q_ptr: tl.tensor, block: tl.tensor, blocks: tl.tensor) -> tl.tensor:
    """Load the coefficients of blocks, int64 (n,), as :func:`forward_blocks` stores them, int8 (n, 8, 8)."""
    return tl.load(q_ptr + _places(block), mask=(block < blocks)[:, None, None], other=0)


@triton.jit
def inverse_blocks(
    q: tl.tensor,
    r_ptr: tl.tensor,
    basis_ptr: tl.tensor,
    shifts_ptr: tl.tensor,
    added_ptr: tl.tensor,
    y_ptr: tl.tensor,
    block: tl.tensor,
    layout: tl.tuple,
    first_shift: tl.constexpr,
    second_shift: tl.constexpr,
    sums: tl.constexpr,
) -> None:
    """Decode the coefficients of blocks, int8 (n, 8, 8), to a tensor."""
    rows, columns, channel_rows, count, per_strip, _ = layout
    q = q.to(tl.int32)
    added = table(added_ptr, LANES, 1).to(tl.int32)[None, :, :]
    steps = (q << table(shifts_ptr, LANES, 1).to(tl.int32)[None, :, :]) + tl.where(q > 0, added, tl.where(q < 0, -added, 0))
    coefficients = clamped(steps, COEFFICIENT_MIN, COEFFICIENT_MAX).to(sums)
    # Axes: block, horizontal frequency, vertical frequency; then block, horizontal frequency, row; then block, row, column.
    waves = table(basis_ptr, SIDE, 1).to(sums)
    between = _shifted(tl.sum(coefficients[:, :, :, None] * waves[None, None, :, :], axis=2), first_shift)
    samples = _shifted(tl.sum(between[:, :, :, None] * waves[None, :, None, :], axis=1), second_shift)
    values = clamped(samples, VALUE_MIN, VALUE_MAX).to(tl.float32)
    row, column = block_rows(block, per_strip)
    r = tl.load(r_ptr + row // channel_rows % count, mask=row < rows, other=1.0)[:, :, None]
    at = row[:, :, None] * columns + column[:, None, :]
    inside = (row < rows)[:, :, None] & (column < columns)[:, None, :]
    tl.store(y_ptr + at, rounded(values * r, y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _inverse_kernel(
    q_ptr: tl.tensor,
    offsets_ptr: tl.tensor,
    r_ptr: tl.tensor,
    basis_ptr: tl.tensor,
    shifts_ptr: tl.tensor,
    added_ptr: tl.tensor,
    y_ptr: tl.tensor,
    size: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    channel_rows: tl.tensor,
    count: tl.tensor,
    per_strip: tl.tensor,
    blocks: tl.tensor,
    first_shift: tl.constexpr,
    second_shift: tl.constexpr,
    sums: tl.constexpr,
    in_masks: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    block = tl.program_id(0).to(tl.int64) * tile_blocks + tl.arange(0, tile_blocks)
    if in_masks:
        q = tl.reshape(unpacked(q_ptr, offsets_ptr, size, blocks, tile_blocks), (tile_blocks, SIDE, LANES))
    else:
        q = load_blocks(q_ptr, block, blocks)
    layout = (rows, columns, channel_rows, count, per_strip, blocks)
    inverse_blocks(q, r_ptr, basis_ptr, shifts_ptr, added_ptr, y_ptr, block, layout, first_shift, second_shift, sums)


@lru_cache
def _table(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(numbers, dtype=torch.uint8, device=device)


def _passes(job: Job) -> dict[str, int]:
    first, second = pass_shifts(job.const_bits, job.pass1_bits)
    return {"first_shift": first, "second_shift": second, "tile_blocks": PROGRAM_BLOCKS}


def layout_of(view: MatrixView, job: Job) -> tuple[int, ...]:
    """Return the arguments of kernels from ``rows`` to ``blocks``."""
    return (view.rows, view.columns, view.channel_rows, job.scales.numel(), view.row_beats, view.blocks)


def forward_arguments(x: Tensor, job: Job) -> tuple[tuple[Tensor, ...], dict[str, int]]:
    """Return the arguments of kernels from ``x_ptr`` to ``shifts_ptr``, and their constants."""
    if job.rounding is None:
        raise ValueError("a jpeg-act job to compress needs a rounding rule")
    tensors = (bits_of(x), job.scales.to(x.device), integer_basis(job.const_bits, x.device), _table(job.shifts, x.device))
    return tensors, {"half_away": job.rounding is Rounding.HALF_AWAY, **_passes(job)}


def inverse_arguments(job: Job, y: Tensor) -> tuple[tuple[Tensor, ...], dict[str, object]]:
    """Return the arguments of kernels from ``r_ptr`` to ``y_ptr``, and their constants."""
    tables = (job.shifts, offsets_of(job.shifts, known(job.how, ShiftCoding).point))
    scales = (job.scales.to(y.device), integer_basis(job.const_bits, y.device))
    sums = tl.int64 if needs_64_bits(job.const_bits, job.pass1_bits) else tl.int32
    return (*scales, *(_table(one, y.device) for one in tables), bits_of(y)), {"sums": sums, **_passes(job)}


def coefficients(view: MatrixView, device: torch.device) -> Tensor:
    """Return memory for the coefficients of a tensor, int8 (blocks, 64)."""
    return torch.empty(view.blocks, geometry.BLOCK_VALUES, dtype=torch.int8, device=device)


def forward(x: Tensor, view: MatrixView, job: Job, lengths: Lengths | None = None) -> Tensor:
    """Return quantised coefficients of a tensor, int8 (blocks, 64): SFPR, then :func:`actcodec.golden.jpeg_act.forward`.

    With ``lengths``, the kernel leaves those of the blocks that ZVC writes.
    """
    q = coefficients(view, x.device)
    tensors, constants = forward_arguments(x, job)
    measures, shape = sums_of(lengths, q)
    programs = programs_for(view.blocks, PROGRAM_BLOCKS)
    launch(_forward_kernel, programs, *tensors, q, *measures, *layout_of(view, job), **constants, **shape)
    return q


def inverse(q: Tensor, view: MatrixView, job: Job, y: Tensor, offsets: Tensor | None = None) -> None:
    """Decode quantised coefficients to ``y``, a tensor of this view; inverse of :func:`forward`.

    With the offsets of units, ``q`` is a payload of ZVC.
    """
    coded, (tensors, constants) = (q, q if offsets is None else offsets), inverse_arguments(job, y)
    sizes = (q.numel(), *layout_of(view, job))
    programs = programs_for(view.blocks, PROGRAM_BLOCKS)
    launch(_inverse_kernel, programs, *coded, *tensors, *sizes, in_masks=offsets is not None, **constants)
