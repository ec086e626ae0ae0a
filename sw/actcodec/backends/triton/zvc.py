"""ZVC by kernels: lengths of blocks first; their sums determine where every byte goes."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from cdu_spec import geometry, modes
from torch import Tensor

from actcodec.backends.triton.block_starts import remember
from actcodec.backends.triton.constants import BLOCK_VALUES, LANES, MASK_BYTES
from actcodec.backends.triton.launch import PROGRAM_BLOCKS, launch, programs_for


@triton.jit
def _lengths_kernel(q_ptr: tl.tensor, lengths_ptr: tl.tensor, blocks: tl.tensor, tile_blocks: tl.constexpr) -> None:
    block = tl.program_id(0).to(tl.int64) * tile_blocks + tl.arange(0, tile_blocks)
    at = block[:, None] * BLOCK_VALUES + tl.arange(0, BLOCK_VALUES)[None, :]
    q = tl.load(q_ptr + at, mask=(block < blocks)[:, None], other=0)
    tl.store(lengths_ptr + block, tl.sum((q != 0).to(tl.int32), axis=1) + MASK_BYTES, mask=block < blocks)


@triton.jit
def _pack_kernel(
    q_ptr: tl.tensor, ends_ptr: tl.tensor, payload_ptr: tl.tensor, blocks: tl.tensor, tile_blocks: tl.constexpr
) -> None:
    block = tl.program_id(0).to(tl.int64) * tile_blocks + tl.arange(0, tile_blocks)
    inside = (block < blocks)[:, None]
    place = tl.arange(0, BLOCK_VALUES)[None, :]
    q = tl.load(q_ptr + block[:, None] * BLOCK_VALUES + place, mask=inside, other=0)
    present = (q != 0).to(tl.int32)
    start = tl.load(ends_ptr + block, mask=block < blocks, other=0) - tl.sum(present, axis=1) - MASK_BYTES
    behind = tl.cumsum(present, axis=1) - present
    tl.store(payload_ptr + start[:, None] + MASK_BYTES + behind, q.to(tl.uint8, bitcast=True), mask=inside & (q != 0))
    flags = tl.reshape(present, (tile_blocks, MASK_BYTES, LANES))
    masks = tl.sum(flags << tl.arange(0, LANES)[None, None, :], axis=2)
    tl.store(payload_ptr + start[:, None] + tl.arange(0, MASK_BYTES)[None, :], masks.to(tl.uint8), mask=inside)


@triton.jit
def _unpack_kernel(
    payload_ptr: tl.tensor, starts_ptr: tl.tensor, q_ptr: tl.tensor, blocks: tl.tensor, tile_blocks: tl.constexpr
) -> None:
    block = tl.program_id(0).to(tl.int64) * tile_blocks + tl.arange(0, tile_blocks)
    inside = (block < blocks)[:, None]
    start = tl.load(starts_ptr + block, mask=block < blocks, other=0)[:, None]
    masks = tl.load(payload_ptr + start + tl.arange(0, MASK_BYTES)[None, :], mask=inside, other=0).to(tl.int32)
    flags = (masks[:, :, None] >> tl.arange(0, LANES)[None, None, :]) & 1
    present = tl.reshape(flags, (tile_blocks, BLOCK_VALUES))
    behind = tl.cumsum(present, axis=1) - present
    q = tl.load(payload_ptr + start + MASK_BYTES + behind, mask=inside & (present != 0), other=0)
    at = block[:, None] * BLOCK_VALUES + tl.arange(0, BLOCK_VALUES)[None, :]
    tl.store(q_ptr + at, q.to(tl.int8, bitcast=True), mask=inside)


def encode(q: Tensor) -> Tensor:
    """Return the payload of blocks as :func:`actcodec.golden.zvc.encode` does."""
    blocks = q.numel() // geometry.BLOCK_VALUES
    programs = programs_for(blocks, PROGRAM_BLOCKS)
    lengths = torch.empty(blocks, dtype=torch.int32, device=q.device)
    launch(_lengths_kernel, programs, q, lengths, blocks, tile_blocks=PROGRAM_BLOCKS)
    ends = lengths.cumsum(0)
    payload = torch.empty(int(ends[-1]), dtype=torch.uint8, device=q.device)
    launch(_pack_kernel, programs, q, ends, payload, blocks, tile_blocks=PROGRAM_BLOCKS)
    remember(payload, ends, modes.Coder.ZVC)
    return payload


def decode_at(payload: Tensor, starts: Tensor) -> Tensor:
    """Decode blocks as :func:`actcodec.golden.zvc.decode_at` does."""
    q = torch.empty(len(starts), geometry.BLOCK_VALUES, dtype=torch.int8, device=payload.device)
    programs = programs_for(len(starts), PROGRAM_BLOCKS)
    launch(_unpack_kernel, programs, payload, starts, q, len(starts), tile_blocks=PROGRAM_BLOCKS)
    return q
