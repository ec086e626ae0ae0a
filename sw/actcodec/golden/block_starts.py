"""Where each block of a payload begins whose blocks tell their length by their first bytes.

ZVC's mask tells it, GMC's head does, so the starts form a chain: with masks, block at p, next block at
``p + 8 + popcount(p .. p+7)``, or earlier where several codes share a byte. Following it one block at a time would be a loop
over blocks. Here the payload is cut into segments of equal length, and every byte is treated as if a block began there:

1. from the right to the left of all segments at once, as many positions per step as the shortest block has bytes: where the
   chain from this position enters the next segment;
2. the same over groups of segments, for all places where a chain can enter, as many as the longest block has bytes;
3. along the groups, then along the segments of all groups at once: where the real chain enters each;
4. along the chain inside all segments at once: the starts.

The work is proportional to the payload, whatever its bytes are. The payload is gone through in windows, so that the memory
beyond the result does not grow with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isqrt

import torch
from cdu_spec.bitstream import MASK_BYTES, BitstreamError
from cdu_spec.geometry import BLOCK_VALUES, VALUE_BITS
from torch import Tensor

from actcodec.golden.bits import popcount_

#: Longest segment in bytes; a multiple of the shortest block of any chain.
_SEGMENT_BYTES = 512
#: Segments are whole words, in which masks are counted.
_WORD_BYTES = 8
#: Bytes of the payload that are looked at together, a multiple of a segment.
_WINDOW_BYTES = 1 << 17


@dataclass(frozen=True)
class Chain:
    """How blocks tell where the next one begins.

    Parameters
    ----------
    shortest, longest
        Bytes of a block, at most 255.
    head
        Bytes at the start of a block that its length follows from.
    lengths
        From bytes, uint8 (8 * n + head,), the length of a block that begins at each but the last ``head`` of them, uint8
        (8 * n,). It may overwrite what it is given.
    """

    shortest: int
    longest: int
    head: int
    lengths: Callable[[Tensor], Tensor]


def mask_chain(bits: int = VALUE_BITS) -> Chain:
    """Blocks with masks: of values of ``bits`` bits, the n of a mask byte take ``ceil(n * bits / 8)`` bytes."""
    return Chain(MASK_BYTES, MASK_BYTES + BLOCK_VALUES, MASK_BYTES, partial(_masked_lengths, bits=bits))


def _masked_lengths(masks: Tensor, bits: int) -> Tensor:
    counts = popcount_(masks)
    if bits < VALUE_BITS:
        counts.mul_(bits).add_(VALUE_BITS - 1).floor_divide_(VALUE_BITS)
    pairs = counts[:-2] + counts[1:-1]
    fours = pairs[:-2] + pairs[2:]
    return (fours[:-4] + fours[4:]).add_(MASK_BYTES)


_ZVC = mask_chain()


def block_starts(payload: Tensor, count: int, chain: Chain = _ZVC) -> Tensor:
    """Offsets of the ``count`` blocks of ``payload`` (uint8, one axis), int64 (count,).

    Raises BitstreamError when the chain does not end, after ``count`` blocks, exactly at the end of the payload.
    """
    size = payload.numel()
    if not chain.shortest * count <= size <= chain.longest * count:
        raise BitstreamError(f"corrupted stream: {size} payload bytes cannot be {count} blocks")
    starts = torch.empty(count, dtype=torch.int64, device=payload.device)
    found = begin = 0
    while begin < size and found < count:
        window = payload[begin : begin + _WINDOW_BYTES + chain.head]
        here, end = _in_window(window, min(size - begin, _WINDOW_BYTES), chain)
        place = starts[found : found + here.numel()]
        torch.add(here[: place.numel()], begin, out=place)
        found += here.numel()
        begin += end
    if found != count or begin != size:
        raise BitstreamError("corrupted stream: the blocks do not end where the payload ends")
    return starts


def _in_window(window: Tensor, size: int, chain: Chain) -> tuple[Tensor, int]:
    """Starts of the chain that begins with byte 0 and where it leaves the first ``size`` bytes; a head may follow them."""
    length = min(max(size, chain.longest), _SEGMENT_BYTES)
    length = -(-length // _WORD_BYTES) * _WORD_BYTES
    lengths = _lengths(window, size, length, chain)
    return _walk(lengths, _entries(_exits(lengths, chain)), size, chain)


def _lengths(window: Tensor, size: int, length: int, chain: Chain) -> Tensor:
    """Length of a block at each of ``size`` positions, uint8 (length + longest, segments); 0 from row ``length`` on."""
    segments = -(-size // length)
    heads = torch.zeros(segments * length + chain.head, dtype=torch.uint8, device=window.device)
    heads[: window.numel()] = window
    table = torch.zeros(length + chain.longest, segments, dtype=torch.uint8, device=window.device)
    table[:length] = chain.lengths(heads).view(segments, length).T
    return table


def _exits(lengths: Tensor, chain: Chain) -> Tensor:
    """Step 1: entry into the next segment for each entry into a segment, uint8 (longest, segments)."""
    rows, segments = lengths.shape
    length, step = rows - chain.longest, chain.shortest
    exits = torch.empty_like(lengths)
    exits[length:] = torch.arange(chain.longest, dtype=torch.uint8, device=lengths.device)[:, None]
    flat = exits.view(-1)
    index = torch.int32 if flat.numel() < 1 << 31 else torch.int64
    # Relative to the first row that is already known, a step further down.
    places = torch.arange(-step * segments, 0, dtype=index, device=lengths.device)
    for row in range(length - step, -1, -step):
        here = slice(row * segments, (row + step) * segments)
        ahead = lengths.view(-1)[here].to(index).mul_(segments).add_(places)
        torch.index_select(flat[here.stop :], 0, ahead, out=flat[here])
    return exits[: chain.longest]


def _entries(exits: Tensor) -> Tensor:
    """Steps 2 and 3: where the chain from byte 0 enters each segment, int64 (segments,)."""
    places, segments = exits.shape
    per_group = isqrt(segments - 1) + 1
    groups = -(-segments // per_group)
    table = torch.zeros(places, groups * per_group, dtype=torch.int64, device=exits.device)
    table[:, :segments] = exits
    table = table.view(places, groups, per_group)

    through = table[:, :, -1]
    for place in range(per_group - 2, -1, -1):
        through = through.gather(0, table[:, :, place])

    entries = torch.zeros(groups, per_group, dtype=torch.int64, device=exits.device)
    for group in range(1, groups):
        entries[group, :1] = through[:, group - 1].gather(0, entries[group - 1, :1])
    for place in range(1, per_group):
        entries[:, place] = table[:, :, place - 1].gather(0, entries[None, :, place - 1])[0]
    return entries.view(-1)[:segments]


def _walk(lengths: Tensor, entries: Tensor, size: int, chain: Chain) -> tuple[Tensor, int]:
    """Step 4: starts of all blocks below ``size`` in order, and where the last of them ends."""
    rows, segments = lengths.shape
    length = rows - chain.longest
    steps = length // chain.shortest
    flat = lengths.view(-1)
    columns = torch.arange(segments, device=lengths.device)
    visited = torch.empty(steps, segments, dtype=torch.int32, device=lengths.device)
    place = entries
    for step in range(steps):
        visited[step] = place
        place = place + flat.index_select(0, place * segments + columns)
    valid = visited < length
    absolute = visited.add_((columns * length).to(visited.dtype))
    starts = absolute.T[valid.logical_and_(absolute < size).T].to(torch.int64)
    last = int(starts[-1])
    return starts, last + int(lengths[last % length, last // length])
