"""Starts of the blocks of a payload whose first bytes determine their lengths.

ZVC's mask and GMC's head determine the length of a block, so the starts form a chain: with masks, the block after the one at p
begins at ``p + 8 + popcount(p .. p+7)``, or earlier if several codes share a byte. First the length of a block that would begin
there is computed for every byte, many at once; then the chain is followed, one block after the other. The payload is processed
in windows, so that the memory beyond the result does not grow with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from cdu_spec.bitstream import BitstreamError
from cdu_spec.geometry import BLOCK_VALUES, VALUE_BITS
from cdu_spec.modes import MASK_BYTES
from torch import Tensor

from actcodec.golden.bits import popcount_

#: Number of bytes of a word; masks are counted in whole words.
_WORD_BYTES = 8
#: Number of bytes of the payload that are processed together.
_WINDOW_BYTES = 1 << 17


@dataclass(frozen=True)
class Chain:
    """Rule by which blocks determine where the next one begins.

    Parameters
    ----------
    shortest, longest
        Bytes of the shortest and the longest block, at most 255.
    head
        Bytes at the start of a block that determine its length.
    lengths
        Function from bytes, uint8 (8 * n + head,), to the length of a block that begins at each but the last ``head`` of them,
        uint8 (8 * n,). The function may overwrite its argument.
    """

    shortest: int
    longest: int
    head: int
    lengths: Callable[[Tensor], Tensor]


def mask_chain(bits: int = VALUE_BITS) -> Chain:
    """Return the chain of blocks with masks: n values of ``bits`` bits in a mask byte take ``ceil(n * bits / 8)`` bytes."""
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
    """Return the offsets of the ``count`` blocks of ``payload`` (uint8, one axis), int64 (count,).

    Raises BitstreamError when the chain does not end, after ``count`` blocks, exactly at the end of the payload.
    """
    size = payload.numel()
    if not chain.shortest * count <= size <= chain.longest * count:
        raise BitstreamError(f"corrupted stream: {size} payload bytes cannot be {count} blocks")
    starts = torch.empty(count, dtype=torch.int64)
    found = begin = 0
    while begin < size and found < count:
        window = payload[begin : begin + _WINDOW_BYTES + chain.head]
        here, end = _in_window(window, min(size - begin, _WINDOW_BYTES), chain)
        place = starts[found : found + len(here)]
        torch.add(torch.tensor(here[: len(place)]), begin, out=place)
        found += len(here)
        begin += end
    if found != count or begin != size:
        raise BitstreamError("corrupted stream: the blocks do not end where the payload ends")
    return starts.to(payload.device)


def end_of_blocks(payload: Tensor, count: int, chain: Chain = _ZVC) -> int:
    """Return where the first ``count`` blocks of a payload end; raise BitstreamError if it has fewer."""
    size, found, begin = payload.numel(), 0, 0
    while found < count and begin < size:
        window = payload[begin : begin + _WINDOW_BYTES + chain.head]
        here, end = _in_window(window, min(size - begin, _WINDOW_BYTES), chain)
        if found + len(here) > count:
            return begin + here[count - found]
        found += len(here)
        begin += end
    if found < count or begin > size:
        raise BitstreamError("corrupted stream: the blocks do not end where the payload ends")
    return begin


def _in_window(window: Tensor, size: int, chain: Chain) -> tuple[list[int], int]:
    """Return the starts of the chain from byte 0 in a window, and where it leaves the first ``size`` bytes."""
    heads = torch.zeros(-(-size // _WORD_BYTES) * _WORD_BYTES + chain.head, dtype=torch.uint8, device=window.device)
    heads[: window.numel()] = window
    lengths = chain.lengths(heads).cpu().numpy().tobytes()
    starts, place = [], 0
    while place < size:
        starts.append(place)
        place += lengths[place]
    return starts, place
