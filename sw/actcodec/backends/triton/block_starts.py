"""Starts of the blocks of a payload, found by walking through all of its segments at once, and kept for units of 16 blocks.

The golden model (:mod:`actcodec.golden.block_starts`) follows the blocks one after the other. Here a program walks through a
segment from each possible entry, a place where a block may begin; the ends of these walks are a map from entries to exits.
torch joins the maps of neighbours in pairs, fours and so on; the way back yields the one real entry of each segment. From there
every segment is walked twice more, to count its blocks and to store where units begin.

Payloads that the encoders of this process made are known: an offset for every unit stands beside each in memory, .03 bit a
value. A program that decodes a unit finds the starts of its blocks from its offset and the blocks' heads.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from cdu_spec.modes import Coder
from torch import Tensor

from actcodec.backends.triton.constants import GMC_LONG_HEAD, GMC_SHORT_BYTES, MASK_BYTES
from actcodec.backends.triton.known_payloads import recalled, remember
from actcodec.backends.triton.launch import PROGRAM_BLOCKS, launch, programs_for

#: Bytes of a segment: more than a block has, and so many that the maps are small relative to the payload.
_SEGMENT_BYTES = 1024
#: Entries that a program follows; no block has more bytes.
_ENTRIES = 128
#: Segments that a program walks through in parallel.
_SEGMENTS = 64
#: Number of blocks of a unit, the first of which has a known offset.
UNIT_BLOCKS = tl.constexpr(PROGRAM_BLOCKS)
#: Bytes from which on a payload has offsets that 32 bits may not hold, and that are not kept.
_MOST_BYTES = 1 << 31
assert max(coder.block_bounds[1] for coder in Coder) <= _ENTRIES <= _SEGMENT_BYTES


@triton.jit
def _block_bytes(
    payload_ptr: tl.tensor, place: tl.tensor, size: tl.tensor, walks: tl.tensor, is_gmc: tl.constexpr
) -> tl.tensor:
    """Return the length of a block at each place, 0 where nothing walks; bytes beyond the payload count as zeros."""
    if is_gmc:
        head = tl.load(payload_ptr + place, mask=walks, other=0).to(tl.int32)
        length = 1 + tl.where(head < GMC_LONG_HEAD, head >> 3, head - (GMC_LONG_HEAD - GMC_SHORT_BYTES - 1))
    else:
        byte = place[:, None] + tl.arange(0, MASK_BYTES)[None, :]
        ones = tl.load(payload_ptr + byte, mask=walks[:, None] & (byte < size), other=0).to(tl.int32)
        ones = ones - ((ones >> 1) & 0x55)
        ones = (ones & 0x33) + ((ones >> 2) & 0x33)
        length = MASK_BYTES + tl.sum((ones + (ones >> 4)) & 0x0F, axis=1)
    return tl.where(walks, length, 0)


@triton.jit
def _exits_kernel(
    payload_ptr: tl.tensor,
    exits_ptr: tl.tensor,
    size: tl.tensor,
    is_gmc: tl.constexpr,
    segment_bytes: tl.constexpr,
    entries: tl.constexpr,
) -> None:
    segment = tl.program_id(0).to(tl.int64)
    begin = segment * segment_bytes
    end = begin + segment_bytes
    place = begin + tl.arange(0, entries)
    while tl.min(place, axis=0) < end:
        place += _block_bytes(payload_ptr, place, size, place < end, is_gmc)
    tl.store(exits_ptr + segment * entries + tl.arange(0, entries), (place - end).to(tl.uint8))


@triton.jit
def _walk_kernel(
    payload_ptr: tl.tensor,
    entries_ptr: tl.tensor,
    firsts_ptr: tl.tensor,
    offsets_ptr: tl.tensor,
    counts_ptr: tl.tensor,
    ends_ptr: tl.tensor,
    size: tl.tensor,
    segments: tl.tensor,
    writes: tl.constexpr,
    is_gmc: tl.constexpr,
    segment_bytes: tl.constexpr,
    tile_segments: tl.constexpr,
) -> None:
    segment = tl.program_id(0).to(tl.int64) * tile_segments + tl.arange(0, tile_segments)
    begin = segment * segment_bytes
    end = tl.minimum(begin + segment_bytes, size)
    place = begin + tl.load(entries_ptr + segment, mask=segment < segments, other=0)
    number = tl.zeros_like(place)
    if writes:
        number += tl.load(firsts_ptr + segment, mask=segment < segments, other=0)
    while tl.max((place < end).to(tl.int32), axis=0) > 0:
        walks = place < end
        if writes:
            tl.store(offsets_ptr + number // UNIT_BLOCKS, place, mask=walks & (number % UNIT_BLOCKS == 0))
        number += walks.to(tl.int64)
        place += _block_bytes(payload_ptr, place, size, walks, is_gmc)
    if not writes:
        tl.store(counts_ptr + segment, number, mask=segment < segments)
        tl.store(ends_ptr + segment, place, mask=segment < segments)


@triton.jit
def starts_of(
    payload_ptr: tl.tensor,
    offsets_ptr: tl.tensor,
    size: tl.tensor,
    blocks: tl.tensor,
    is_gmc: tl.constexpr,
    tile_blocks: tl.constexpr,
) -> tl.tensor:
    """Return where a program's blocks begin, int64 (tile_blocks,), from the offsets of their units."""
    units: tl.constexpr = tile_blocks // UNIT_BLOCKS
    unit = tl.program_id(0).to(tl.int64) * units + tl.arange(0, units)
    place = tl.load(offsets_ptr + unit, mask=unit * UNIT_BLOCKS < blocks, other=0).to(tl.int64)
    number = tl.arange(0, UNIT_BLOCKS)[None, :]
    starts = tl.zeros((units, UNIT_BLOCKS), tl.int64)
    for step in range(UNIT_BLOCKS):
        starts = tl.where(number == step, place[:, None], starts)
        place += _block_bytes(payload_ptr, place, size, unit * UNIT_BLOCKS + step < blocks, is_gmc)
    return tl.reshape(starts, (tile_blocks,))


def remember_units(payload: Tensor, offsets: Tensor, blocks: int, coder: Coder) -> None:
    """Keep the offsets of units, int32 (units,), as long as ``payload`` exists."""
    if payload.numel() < _MOST_BYTES:
        remember(payload, (blocks, coder), offsets)


def unit_offsets(payload: Tensor, count: int, coder: Coder) -> Tensor | None:
    """Return where the units of the ``count`` blocks of a payload begin; None unless it is exactly ``count`` blocks."""
    offsets = recalled(payload, (count, coder))
    return offsets if isinstance(offsets, Tensor) else _walked(payload, count, coder)


def _walked(payload: Tensor, count: int, coder: Coder) -> Tensor | None:
    size = payload.numel()
    segments = programs_for(size, _SEGMENT_BYTES)
    shape = {"is_gmc": coder is Coder.GMC, "segment_bytes": _SEGMENT_BYTES}
    # The last segment has no exits, because nothing follows.
    exits = torch.zeros(segments, _ENTRIES, dtype=torch.uint8, device=payload.device)
    launch(_exits_kernel, segments - 1, payload, exits, size, entries=_ENTRIES, **shape)
    entries = _entries(exits)
    sizes = (segments, segments, programs_for(count, UNIT_BLOCKS.value))
    counts, ends, offsets = (torch.empty(n, dtype=torch.int64, device=payload.device) for n in sizes)

    def walk(firsts: Tensor, *, writes: bool) -> None:
        tensors = (payload, entries, firsts, offsets, counts, ends)
        programs = programs_for(segments, _SEGMENTS)
        launch(_walk_kernel, programs, *tensors, size, segments, writes=writes, tile_segments=_SEGMENTS, **shape)

    walk(counts, writes=False)
    behind = counts.cumsum(0)
    if (int(behind[-1]), int(ends[-1])) != (count, size):
        return None
    walk(behind - counts, writes=True)
    return offsets


def _entries(exits: Tensor) -> Tensor:
    """Return where the chain from the first byte enters each segment, int64 (n,), from exits, uint8 (n, entries)."""
    if len(exits) == 1:
        return torch.zeros(1, dtype=torch.int64, device=exits.device)
    even, odd = exits[0::2], exits[1::2]
    through = odd.gather(1, even[: len(odd)].to(torch.int64))
    outer = _entries(through if len(odd) == len(even) else torch.cat((through, even[-1:])))
    inner = even.gather(1, outer[:, None])[:, 0].to(torch.int64)
    return torch.stack((outer, inner), 1).flatten()[: len(exits)]
