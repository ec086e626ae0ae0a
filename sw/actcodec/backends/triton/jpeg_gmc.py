"""Mode jpeg-act with coder GMC: transform and coder in one kernel, each program after the other for its own blocks."""

from __future__ import annotations

import triton
import triton.language as tl
from cdu_spec.matrix_view import MatrixView
from torch import Tensor

from actcodec.backends.job import Job
from actcodec.backends.triton.gmc_codes import lookups
from actcodec.backends.triton.gmc_decoder import read_blocks
from actcodec.backends.triton.gmc_encoder import Bodies, write_bodies
from actcodec.backends.triton.jpeg_act import (
    coefficients,
    forward_arguments,
    forward_blocks,
    inverse_arguments,
    inverse_blocks,
    layout_of,
    load_blocks,
)
from actcodec.backends.triton.launch import launch, programs_for
from actcodec.backends.triton.lengths import Lengths, Measured

#: Number of blocks per program, coded in parallel.
_LANES = 64


@triton.jit
def _encode_kernel(
    x_ptr: tl.tensor,
    k_ptr: tl.tensor,
    basis_ptr: tl.tensor,
    shifts_ptr: tl.tensor,
    q_ptr: tl.tensor,
    a_ptr: tl.tensor,
    b_ptr: tl.tensor,
    mask_ptr: tl.tensor,
    bodies_ptr: tl.tensor,
    lasts_ptr: tl.tensor,
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
    lanes: tl.constexpr,
) -> None:
    layout = (rows, columns, channel_rows, count, per_strip, blocks)
    for start in range(0, lanes, tile_blocks):
        block = tl.program_id(0).to(tl.int64) * lanes + start + tl.arange(0, tile_blocks)
        forward_blocks(x_ptr, k_ptr, basis_ptr, shifts_ptr, q_ptr, block, layout, first_shift, second_shift, half_away)
    tl.debug_barrier()  # lanes read coefficients that others have stored
    write_bodies(
        q_ptr, a_ptr, b_ptr, mask_ptr, bodies_ptr, lasts_ptr, sums_ptr, marks_ptr, blocks, group_units=group_units, lanes=lanes
    )


@triton.jit
def _decode_kernel(
    payload_ptr: tl.tensor,
    offsets_ptr: tl.tensor,
    a_ptr: tl.tensor,
    b_ptr: tl.tensor,
    mask_ptr: tl.tensor,
    q_ptr: tl.tensor,
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
    tile_blocks: tl.constexpr,
    lanes: tl.constexpr,
) -> None:
    read_blocks(payload_ptr, offsets_ptr, a_ptr, b_ptr, mask_ptr, q_ptr, size, blocks, lanes=lanes)
    tl.debug_barrier()  # tiles read coefficients that lanes have stored
    layout = (rows, columns, channel_rows, count, per_strip, blocks)
    for start in range(0, lanes, tile_blocks):
        block = tl.program_id(0).to(tl.int64) * lanes + start + tl.arange(0, tile_blocks)
        q = load_blocks(q_ptr, block, blocks)
        inverse_blocks(q, r_ptr, basis_ptr, shifts_ptr, added_ptr, y_ptr, block, layout, first_shift, second_shift, sums)


def encode(x: Tensor, view: MatrixView, job: Job, lengths: Lengths) -> Measured:
    """Return the blocks of a tensor, whose lengths the kernel leaves."""
    q, bodies = coefficients(view, x.device), Bodies.of(lengths)
    tensors, constants = forward_arguments(x, job)
    sizes = layout_of(view, job)
    programs = programs_for(view.blocks, _LANES)
    launch(_encode_kernel, programs, *tensors, q, *bodies.tensors, *sizes, **constants, **lengths.shape, lanes=_LANES)
    return bodies.measured(q)


def decode(payload: Tensor, offsets: Tensor, view: MatrixView, job: Job, y: Tensor) -> None:
    """Decode a payload, with the offsets of its units, to ``y``, a tensor of this view."""
    q, (tensors, constants) = coefficients(view, payload.device), inverse_arguments(job, y)
    coded = (payload, offsets, *lookups(payload.device), q)
    sizes = (payload.numel(), *layout_of(view, job))
    launch(_decode_kernel, programs_for(view.blocks, _LANES), *coded, *tensors, *sizes, **constants, lanes=_LANES)
