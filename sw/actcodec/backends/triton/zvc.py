"""ZVC by kernels: blocks of coefficients from the masks and bytes of a payload, and back."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from actcodec.backends.triton.block_starts import starts_of
from actcodec.backends.triton.constants import BLOCK_VALUES, LANES, MASK_BYTES
from actcodec.backends.triton.launch import PROGRAM_BLOCKS, launch
from actcodec.backends.triton.lengths import Lengths, add_lengths, placed


@triton.jit
def _lengths_of(present: tl.tensor, block: tl.tensor, blocks: tl.tensor) -> tl.tensor:
    return tl.where(block < blocks, tl.sum(present, axis=1) + MASK_BYTES, 0)


@triton.jit
def measure(
    q: tl.tensor,
    block: tl.tensor,
    sums_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    blocks: tl.tensor,
    group_units: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    """Leave the sums of the lengths of a program's blocks, whose coefficients are ``q`` in order; without groups leave none."""
    if group_units:
        present = tl.reshape((q != 0).to(tl.int32), (tile_blocks, BLOCK_VALUES))
        add_lengths(_lengths_of(present, block, blocks), sums_ptr, marks_ptr, blocks, group_units)


@triton.jit
def _pack_kernel(
    q_ptr: tl.tensor,
    sums_ptr: tl.tensor,
    marks_ptr: tl.tensor,
    payload_ptr: tl.tensor,
    offsets_ptr: tl.tensor,
    blocks: tl.tensor,
    group_units: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> None:
    block = tl.program_id(0).to(tl.int64) * tile_blocks + tl.arange(0, tile_blocks)
    inside = (block < blocks)[:, None]
    place = tl.arange(0, BLOCK_VALUES)[None, :]
    q = tl.load(q_ptr + block[:, None] * BLOCK_VALUES + place, mask=inside, other=0)
    present = (q != 0).to(tl.int32)
    start = placed(_lengths_of(present, block, blocks), sums_ptr, marks_ptr, offsets_ptr, group_units)
    behind = tl.cumsum(present, axis=1) - present
    tl.store(payload_ptr + start[:, None] + MASK_BYTES + behind, q.to(tl.uint8, bitcast=True), mask=inside & (q != 0))
    flags = tl.reshape(present, (tile_blocks, MASK_BYTES, LANES))
    masks = tl.sum(flags << tl.arange(0, LANES)[None, None, :], axis=2)
    tl.store(payload_ptr + start[:, None] + tl.arange(0, MASK_BYTES)[None, :], masks.to(tl.uint8), mask=inside)


@triton.jit
def unpacked(
    payload_ptr: tl.tensor, offsets_ptr: tl.tensor, size: tl.tensor, blocks: tl.tensor, tile_blocks: tl.constexpr
) -> tl.tensor:
    """Return the coefficients of a program's blocks, int8 (tile_blocks, 64), as :func:`actcodec.golden.zvc.decode_at` does."""
    block = tl.program_id(0).to(tl.int64) * tile_blocks + tl.arange(0, tile_blocks)
    inside = (block < blocks)[:, None]
    start = starts_of(payload_ptr, offsets_ptr, size, blocks, False, tile_blocks)[:, None]
    masks = tl.load(payload_ptr + start + tl.arange(0, MASK_BYTES)[None, :], mask=inside, other=0).to(tl.int32)
    flags = (masks[:, :, None] >> tl.arange(0, LANES)[None, None, :]) & 1
    present = tl.reshape(flags, (tile_blocks, BLOCK_VALUES))
    behind = tl.cumsum(present, axis=1) - present
    q = tl.load(payload_ptr + start + MASK_BYTES + behind, mask=inside & (present != 0), other=0)
    return q.to(tl.int8, bitcast=True)


def pack(q: Tensor, lengths: Lengths, payload: Tensor, offsets: Tensor) -> None:
    """Write the payload of blocks, int8 (blocks, 64), as :func:`actcodec.golden.zvc.encode` does."""
    tensors = (q, lengths.sums, lengths.marks, payload, offsets)
    launch(_pack_kernel, lengths.units, *tensors, lengths.blocks, **lengths.shape, tile_blocks=PROGRAM_BLOCKS)
