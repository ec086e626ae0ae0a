"""Where each block of a payload with masks begins.

A block's length stands in its mask, so the starts form a chain: block at p, next block at ``p + 8 + popcount(p .. p+7)``, or
earlier where several codes share a byte. Following it one block at a time would be a loop over blocks. Here the payload is cut
into segments of equal length, and every byte position is treated as if a block began there:

1. from the right to the left of all segments at once, eight positions per step (a block has at least eight bytes): where
   the chain from this position enters the next segment;
2. the same over groups of segments, for the 72 places where a chain can enter;
3. along the groups, then along the segments of all groups at once: where the real chain enters each;
4. along the chain inside all segments at once: the starts.

The work is proportional to the payload, whatever its bytes are. The payload is gone through in windows, so that the memory
beyond the result does not grow with it.
"""

from __future__ import annotations

from math import isqrt

import torch
from cdu_spec.bitstream import MASK_BYTES, BitstreamError
from cdu_spec.geometry import BLOCK_VALUES, VALUE_BITS
from torch import Tensor

from actcodec.golden.bits import popcount_

#: Longest block, and number of places where a chain can enter a segment.
_ENTRIES = MASK_BYTES + BLOCK_VALUES
#: Longest segment in bytes; a multiple of the shortest block.
_SEGMENT_BYTES = 512
#: Bytes of the payload that are looked at together; a multiple of a segment.
_WINDOW_BYTES = 1 << 22


def block_starts(payload: Tensor, count: int, bits: int = VALUE_BITS) -> Tensor:
    """Offsets of the ``count`` blocks of ``payload`` (uint8, one axis), int64 (count,).

    ``bits`` per value that is not zero: the n of a mask byte take ``ceil(n * bits / 8)`` bytes.

    Raises BitstreamError when the chain does not end, after ``count`` blocks, exactly at the end of the payload.
    """
    size = payload.numel()
    if not MASK_BYTES * count <= size <= _ENTRIES * count:
        raise BitstreamError(f"corrupted stream: {size} payload bytes cannot be {count} blocks with masks")
    starts = torch.empty(count, dtype=torch.int64, device=payload.device)
    found = begin = 0
    while begin < size and found < count:
        here, end = _in_window(payload[begin : begin + _WINDOW_BYTES + MASK_BYTES], min(size - begin, _WINDOW_BYTES), bits)
        place = starts[found : found + here.numel()]
        torch.add(here[: place.numel()], begin, out=place)
        found += here.numel()
        begin += end
    if found != count or begin != size:
        raise BitstreamError("corrupted stream: the blocks do not end where the payload ends")
    return starts


def _in_window(window: Tensor, size: int, bits: int) -> tuple[Tensor, int]:
    """Starts of the chain that begins with byte 0 and where it leaves the first ``size`` bytes; a mask may follow them."""
    length = min(max(-(-size // MASK_BYTES) * MASK_BYTES, _ENTRIES), _SEGMENT_BYTES)
    lengths = _lengths(window, size, length, bits)
    return _walk(lengths, _entries(_exits(lengths)), size)


def _lengths(window: Tensor, size: int, length: int, bits: int) -> Tensor:
    """Length that a block at each of ``size`` positions would have, uint8 (length + 72, segments); 0 from row ``length`` on."""
    segments = -(-size // length)
    counts = torch.zeros(segments * length + MASK_BYTES, dtype=torch.uint8, device=window.device)
    counts[: window.numel()] = window
    popcount_(counts)
    if bits < VALUE_BITS:
        counts.mul_(bits).add_(VALUE_BITS - 1).floor_divide_(VALUE_BITS)
    pairs = counts[:-2] + counts[1:-1]
    fours = pairs[:-2] + pairs[2:]
    eights = fours[:-4] + fours[4:]
    table = torch.zeros(length + _ENTRIES, segments, dtype=torch.uint8, device=window.device)
    table[:length] = eights.view(segments, length).T.add(MASK_BYTES)
    return table


def _exits(lengths: Tensor) -> Tensor:
    """Step 1: entry into the next segment for each entry into a segment, uint8 (72, segments)."""
    rows, segments = lengths.shape
    length = rows - _ENTRIES
    exits = torch.empty_like(lengths)
    exits[length:] = torch.arange(_ENTRIES, dtype=torch.uint8, device=lengths.device)[:, None]
    flat = exits.view(-1)
    index = torch.int32 if flat.numel() < 1 << 31 else torch.int64
    # Relative to the first row that is already known, eight rows further down.
    places = torch.arange(-MASK_BYTES * segments, 0, dtype=index, device=lengths.device)
    for row in range(length - MASK_BYTES, -1, -MASK_BYTES):
        here = slice(row * segments, (row + MASK_BYTES) * segments)
        ahead = lengths.view(-1)[here].to(index).mul_(segments).add_(places)
        torch.index_select(flat[here.stop :], 0, ahead, out=flat[here])
    return exits[:_ENTRIES]


def _entries(exits: Tensor) -> Tensor:
    """Steps 2 and 3: where the chain from byte 0 enters each segment, int64 (segments,)."""
    segments = exits.shape[1]
    per_group = isqrt(segments - 1) + 1
    groups = -(-segments // per_group)
    table = torch.zeros(_ENTRIES, groups * per_group, dtype=torch.int64, device=exits.device)
    table[:, :segments] = exits
    table = table.view(_ENTRIES, groups, per_group)

    through = table[:, :, -1]
    for place in range(per_group - 2, -1, -1):
        through = through.gather(0, table[:, :, place])

    entries = torch.zeros(groups, per_group, dtype=torch.int64, device=exits.device)
    for group in range(1, groups):
        entries[group, :1] = through[:, group - 1].gather(0, entries[group - 1, :1])
    for place in range(1, per_group):
        entries[:, place] = table[:, :, place - 1].gather(0, entries[None, :, place - 1])[0]
    return entries.view(-1)[:segments]


def _walk(lengths: Tensor, entries: Tensor, size: int) -> tuple[Tensor, int]:
    """Step 4: starts of all blocks below ``size`` in order, and where the last of them ends."""
    rows, segments = lengths.shape
    length = rows - _ENTRIES
    steps = length // MASK_BYTES
    flat = lengths.view(-1)
    columns = torch.arange(segments, device=lengths.device)
    visited = torch.empty(steps, segments, dtype=torch.int64, device=lengths.device)
    place = entries
    for step in range(steps):
        visited[step] = place
        place = place + flat.index_select(0, place * segments + columns)
    absolute = visited + columns * length
    valid = (visited < length) & (absolute < size)
    starts = absolute.T[valid.T]
    last = int(starts[-1])
    return starts, last + int(lengths[last % length, last // length])
