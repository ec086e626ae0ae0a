"""Mode division: quantised blocks with their mean, or with their own range, and the inverse."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from cdu_spec.affine import AffineSettings
from cdu_spec.coding import head_bytes, known
from cdu_spec.matrix_view import MatrixView
from torch import Tensor

from actcodec.backends.job import Job
from actcodec.backends.triton.affine import (
    beats,
    codes_of,
    found_step,
    fractions,
    load_codes,
    load_head,
    load_step,
    per_row,
    store_codes,
    store_head,
    store_step,
)
from actcodec.backends.triton.constants import BASE_MAX, BASE_MIN, BLOCK_VALUES, LANES, MEAN_SHIFT, SIDE
from actcodec.backends.triton.launch import PROGRAM_BLOCKS, bits_of, launch, programs_for
from actcodec.backends.triton.values import number, product, rounded, saturated
from actcodec.golden.heads import headed_bytes


@triton.jit
def _places(beat: tl.tensor, per_strip: tl.tensor) -> tl.tensor:
    """Return row (n, 1) and columns (n, 8) of the matrix for beats of blocks."""
    block = beat // SIDE
    row = block // per_strip * SIDE + beat % SIDE
    return row[:, None], (block % per_strip * LANES)[:, None] + tl.arange(0, LANES)[None, :]


@triton.jit(do_not_specialize=["seed"])
def _encode_kernel(
    x_ptr: tl.tensor,
    k_ptr: tl.tensor,
    payload_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    channel_rows: tl.tensor,
    count: tl.tensor,
    per_strip: tl.tensor,
    blocks: tl.tensor,
    seed: tl.tensor,
    block_bytes: tl.constexpr,
    head: tl.constexpr,
    bits: tl.constexpr,
    step_log2: tl.constexpr,
    block_range: tl.constexpr,
    stochastic: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    beat = beats(tile_blocks * SIDE)
    row, column = _places(beat, per_strip)
    # Blocks are padded with the last value of each row and the last row.
    row, column = tl.minimum(row, rows - 1), tl.minimum(column, columns - 1)
    k = tl.load(k_ptr + row // channel_rows % count)
    x = saturated(product(number(tl.load(x_ptr + row * columns + column)), k), BASE_MIN, BASE_MAX)
    by_block = tl.reshape(x, (tile_blocks, BLOCK_VALUES))
    block = tl.program_id(0).to(tl.int64) * tile_blocks + tl.arange(0, tile_blocks)
    head_ptr = payload_ptr + block * block_bytes
    if block_range:
        low = tl.min(by_block, axis=1)
        mantissa, exponent = found_step(tl.max(by_block, axis=1) - low, bits)
        store_head(head_ptr, low, block < blocks)
        store_step(head_ptr, mantissa, exponent, block < blocks)
    else:
        mean = (tl.sum(by_block, axis=1) + BLOCK_VALUES // 2) >> MEAN_SHIFT
        low = mean - ((((1 << bits) - 1) << step_log2) >> 1)
        mantissa, exponent = tl.full((tile_blocks,), 1, tl.int32), tl.full((tile_blocks,), step_log2, tl.int32)
        store_head(head_ptr, mean, block < blocks)
    rho = fractions(seed, beat, stochastic)
    codes = codes_of(x, per_row(low, SIDE), per_row(mantissa, SIDE), per_row(exponent, SIDE), rho, bits)
    at = beat // SIDE * block_bytes + head + beat % SIDE * bits
    store_codes(payload_ptr, at, codes, (beat // SIDE < blocks)[:, None], bits)


@triton.jit
def _decode_kernel(
    payload_ptr: tl.tensor,
    r_ptr: tl.tensor,
    y_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    channel_rows: tl.tensor,
    count: tl.tensor,
    per_strip: tl.tensor,
    blocks: tl.tensor,
    block_bytes: tl.constexpr,
    head: tl.constexpr,
    bits: tl.constexpr,
    step_log2: tl.constexpr,
    block_range: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    beat = beats(tile_blocks * SIDE)
    inside = beat // SIDE < blocks
    head_ptr = payload_ptr + beat // SIDE * block_bytes
    if block_range:
        low, step = load_head(head_ptr, inside), load_step(head_ptr, inside)
    else:
        low = load_head(head_ptr, inside) - ((((1 << bits) - 1) << step_log2) >> 1)
        step = tl.full((tile_blocks * SIDE,), 1 << step_log2, tl.int32)
    codes = load_codes(payload_ptr, beat // SIDE * block_bytes + head + beat % SIDE * bits, inside[:, None], bits)
    values = (low[:, None] + codes * step[:, None]).to(tl.float32)
    row, column = _places(beat, per_strip)
    r = tl.load(r_ptr + row // channel_rows % count, mask=row < rows, other=1.0)
    y = rounded(values * r, y_ptr.dtype.element_ty)
    tl.store(y_ptr + row * columns + column, y, mask=(row < rows) & (column < columns))


def _layout(view: MatrixView, job: Job) -> tuple[int, ...]:
    return (view.rows, view.columns, view.channel_rows, job.scales.numel(), view.row_beats, view.blocks)


def _form(job: Job) -> dict[str, int]:
    settings = known(job.how, AffineSettings)
    sizes = {"block_bytes": headed_bytes(job.mode, settings), "head": head_bytes(job.mode, settings)}
    quantizer = {"bits": settings.bits, "step_log2": settings.step_log2, "block_range": settings.block_range}
    return {**sizes, **quantizer, "tile_blocks": PROGRAM_BLOCKS}


def encode(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    """Return the payload of a tensor as :func:`actcodec.golden.division.encode` does."""
    settings = known(job.how, AffineSettings)
    payload = torch.empty(view.payload_bounds(job.dtype, settings)[0], dtype=torch.uint8, device=x.device)
    tensors = (bits_of(x), job.scales.to(x.device), payload)
    programs = programs_for(view.blocks, PROGRAM_BLOCKS)
    launch(_encode_kernel, programs, *tensors, *_layout(view, job), settings.seed, stochastic=settings.stochastic, **_form(job))
    return payload


def decode(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> None:
    """Decode a payload with valid heads (:func:`actcodec.golden.heads.check_heads`) to ``y``."""
    tensors = (payload, job.scales.to(payload.device), bits_of(y))
    launch(_decode_kernel, programs_for(view.blocks, PROGRAM_BLOCKS), *tensors, *_layout(view, job), **_form(job))
