"""Kernels of the coder of jpeg-gmc alone, for coefficients that no transform makes."""

import torch
import triton
import triton.language as tl
from actcodec.backends.triton.gmc_codes import lookups
from actcodec.backends.triton.gmc_decoder import read_blocks
from actcodec.backends.triton.gmc_encoder import Bodies, write_bodies
from actcodec.backends.triton.launch import launch, programs_for

_LANES = 64


@triton.jit
def _write_kernel(
    q_ptr: tl.tensor,
    a_ptr: tl.tensor,
    b_ptr: tl.tensor,
    mask_ptr: tl.tensor,
    bodies_ptr: tl.tensor,
    lasts_ptr: tl.tensor,
    sums_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    blocks: tl.tensor,
    group_units: tl.constexpr,
    lanes: tl.constexpr,
) -> None:
    write_bodies(q_ptr, a_ptr, b_ptr, mask_ptr, bodies_ptr, lasts_ptr, sums_ptr, marks_ptr, blocks, group_units, lanes)


@triton.jit
def _read_kernel(
    payload_ptr: tl.tensor,
    offsets_ptr: tl.tensor,
    a_ptr: tl.tensor,
    b_ptr: tl.tensor,
    mask_ptr: tl.tensor,
    q_ptr: tl.tensor,
    size: tl.tensor,
    blocks: tl.tensor,
    lanes: tl.constexpr,
) -> None:
    read_blocks(payload_ptr, offsets_ptr, a_ptr, b_ptr, mask_ptr, q_ptr, size, blocks, lanes)


def encoded(q, lengths):
    """Return the payload of blocks, int8 (blocks, 64)."""
    bodies = Bodies.of(lengths)
    launch(_write_kernel, programs_for(len(q), _LANES), q, *bodies.tensors, len(q), **lengths.shape, lanes=_LANES)
    return bodies.measured(q).payload()


def decoded(payload, offsets, blocks):
    """Return the blocks of a payload, int8 (blocks, 64)."""
    q = torch.empty(blocks, 64, dtype=torch.int8, device=payload.device)
    tensors = (payload, offsets, *lookups(payload.device), q)
    launch(_read_kernel, programs_for(blocks, _LANES), *tensors, payload.numel(), blocks, lanes=_LANES)
    return q
