"""Decoder of entropy-coded segments: the inverse of :mod:`actcodec.golden.entropy_encoder`, for any content, in linear time.

The start of a code is known only when the code before it has been read, so the chain is followed symbol by symbol. All other
work is done on whole arrays: the symbols that would begin at *each* bit, before the chain is followed, and the values, after
it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from cdu_spec.bitstream import BitstreamError
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.huffman import MAX_CODE_BITS, HuffmanTables
from cdu_spec.jpeg import DC_MAX, DC_MIN, EOB, MARKER, ZRL
from torch import Tensor

from actcodec.golden.checks import require
from actcodec.golden.huffman import lookup

_Bytes = npt.NDArray[np.uint8]
_Integers = npt.NDArray[np.int64]
_Coefficients = npt.NDArray[np.int16]
_Piece = tuple["array[int]", "array[int]", int | None]
#: Number of bytes of the segment whose bits are processed together.
_CHUNK_BYTES = 1 << 16
#: Number of blocks whose values are read together.
_PIECE_BLOCKS = 1 << 10
#: Bits of the shortest block: a DC category and the end of the block.
_LEAST_BLOCK_BITS = 2
_TOO_SHORT = "corrupted stream: the entropy-coded segment ends before its last block does"
#: Number of bytes of ones after the segment, so that a window may reach beyond its end.
_BEYOND = 4
#: Advance in a block of EOB, and of a pattern that is no code: both end the block.
_ENDS, _NO_CODE = BLOCK_VALUES, 255


def decode(segment: Tensor, count: int, tables: HuffmanTables) -> Tensor:
    """Decode the ``count`` blocks (at least one) of a segment, uint8 (n,), to int16 (count, 64) in zig-zag order.

    Raises BitstreamError unless the segment is exactly ``count`` blocks, padded with ones to a whole byte, and for values that
    8-bit samples cannot have.
    """
    require("segment", segment, (torch.uint8,))
    data = _unstuffed(segment.cpu().numpy())
    if _LEAST_BLOCK_BITS * count > 8 * (len(data) - _BEYOND):
        raise BitstreamError(_TOO_SHORT)
    coefficients = np.zeros((count, BLOCK_VALUES), dtype=np.int16)
    done = previous_dc = 0
    for positions, firsts, end in _chain(data, count, tables):
        if end is not None and (done + len(firsts) != count or end > 8 * (len(data) - _BEYOND)):
            raise BitstreamError(_TOO_SHORT)
        piece = coefficients[done : done + len(firsts)]
        _fill(piece, data, (positions, firsts, end), tables, previous_dc)
        done, previous_dc = done + len(firsts), int(piece[-1, 0])
    return torch.from_numpy(coefficients).to(segment.device)


def _fill(coefficients: _Coefficients, data: _Bytes, piece: _Piece, tables: HuffmanTables, previous_dc: int) -> None:
    """Read the coefficients of some blocks into ``coefficients``, initially zeros."""
    positions, firsts, end = piece
    dc_symbols, dc_lengths = lookup(tables.dc)
    ac_symbols, ac_lengths = lookup(tables.ac)
    at = np.frombuffer(positions, dtype=np.int64)
    first = np.frombuffer(firsts, dtype=np.int64)
    is_dc = np.zeros(len(at), dtype=bool)
    is_dc[first] = True
    patterns = _windows(data, at, MAX_CODE_BITS)
    lengths = np.where(is_dc, dc_lengths[patterns], ac_lengths[patterns]).astype(np.int64)
    found = np.where(is_dc, dc_symbols[patterns], ac_symbols[patterns]).astype(np.int64)
    if not lengths.all():
        raise BitstreamError("corrupted stream: a pattern of bits is no Huffman code")
    if end is not None:
        _check_filling(data, end)
    runs, sizes = np.where(is_dc, 0, found >> 4), found & 15
    advances = np.where(~is_dc & (found == EOB), 0, runs + 1)
    reached = advances.cumsum()
    block = is_dc.cumsum() - 1
    # Place after each symbol. A ZRL must leave room for a coefficient, and the coefficient must follow.
    place = reached - (reached[first] - advances[first])[block]
    zeros = ~is_dc & (found == ZRL)
    if bool((place + zeros > BLOCK_VALUES).any()):
        raise BitstreamError("corrupted stream: a run leaves its block")
    if bool((zeros[:-1] & (found[1:] == EOB)).any()):
        raise BitstreamError("corrupted stream: a run of sixteen zeros is not followed by a coefficient of its block")
    values = _windows(data, at + lengths, sizes)
    values = np.where(values >> np.maximum(sizes - 1, 0) == 0, values - (1 << sizes) + 1, values)
    values[is_dc] = values[is_dc].cumsum() + previous_dc
    dc = values[is_dc]
    if dc.min() < DC_MIN or dc.max() > DC_MAX:
        raise BitstreamError(f"corrupted stream: a DC coefficient is not within {DC_MIN} to {DC_MAX}")
    kept = is_dc | (sizes > 0)
    coefficients[block[kept], place[kept] - 1] = values[kept]


def _unstuffed(segment: _Bytes) -> _Bytes:
    """Remove the zero byte after every FF and append ones; raise BitstreamError if another byte follows an FF."""
    marks = np.flatnonzero(segment == MARKER)
    if len(marks) and (marks[-1] + 1 == len(segment) or segment[marks + 1].any()):
        raise BitstreamError("corrupted stream: a marker stands in the entropy-coded segment")
    return np.concatenate((np.delete(segment, marks + 1), np.full(_BEYOND, 0xFF, dtype=np.uint8)))


def _chain(data: _Bytes, count: int, tables: HuffmanTables) -> Iterator[_Piece]:
    """Yield bit positions of symbols, the number of each block's first symbol, and the end, for some blocks at a time.

    The end, a bit position, comes with the last blocks; it is None before. The chain stops after ``count`` blocks, or at the
    end of the data. A pattern that is no code counts as one bit; among AC codes it ends its block.
    """
    positions, firsts, done = array("q"), array("q"), 0
    place, at, begin = BLOCK_VALUES, 0, 0
    for size, dc_steps, ac_steps, advances in _steps(data, tables):
        while at < size:
            if place < BLOCK_VALUES:
                positions.append(begin + at)
                place += advances[at]
                at += ac_steps[at]
            elif done + len(firsts) < count:
                if len(firsts) == _PIECE_BLOCKS:
                    yield positions, firsts, None
                    positions, firsts, done = array("q"), array("q"), done + _PIECE_BLOCKS
                firsts.append(len(positions))
                positions.append(begin + at)
                place = 1
                at += dc_steps[at]
            else:
                yield positions, firsts, begin + at
                return
        at -= size
        begin += size
    # An incomplete block reads on beyond the data.
    yield positions, firsts, begin + at + (place < BLOCK_VALUES)


def _steps(data: _Bytes, tables: HuffmanTables) -> Iterator[tuple[int, bytes, bytes, bytes]]:
    """Yield for each chunk its bits, and, per bit, the bits of a DC symbol there, and bits and advance of an AC symbol."""
    (dc_symbols, dc_lengths), (ac_symbols, ac_lengths) = lookup(tables.dc), lookup(tables.ac)
    dc_table = np.where(dc_lengths > 0, dc_lengths + dc_symbols, 1).astype(np.uint8)
    ac_table = np.where(ac_lengths > 0, ac_lengths + (ac_symbols & 15), 1).astype(np.uint8)
    ends = np.where(ac_lengths == 0, _NO_CODE, _ENDS)
    advance_table = np.where((ac_lengths == 0) | (ac_symbols == EOB), ends, (ac_symbols >> 4) + 1).astype(np.uint8)
    shifts = np.arange(8, 0, -1, dtype=np.uint32)
    length = len(data) - _BEYOND
    for begin in range(0, length, _CHUNK_BYTES):
        size = min(_CHUNK_BYTES, length - begin)
        wide = data[begin : begin + size + 2].astype(np.uint32)
        threes = wide[:-2] << 16 | wide[1:-1] << 8 | wide[2:]
        patterns = (threes[:, None] >> shifts & 0xFFFF).astype(np.uint16).ravel()
        yield 8 * size, dc_table[patterns].tobytes(), ac_table[patterns].tobytes(), advance_table[patterns].tobytes()


def _windows(data: _Bytes, at: _Integers, widths: _Integers | int) -> _Integers:
    """Return ``widths`` bits, at most 16, from each bit position on, as numbers."""
    byte = at >> 3
    threes = data[byte].astype(np.int64) << 16 | data[byte + 1].astype(np.int64) << 8 | data[byte + 2]
    found: _Integers = threes >> (24 - (at & 7) - widths) & ((1 << widths) - 1)
    return found


def _check_filling(data: _Bytes, end: int) -> None:
    """Raise BitstreamError unless less than a byte follows the last bit, all ones."""
    total = 8 * (len(data) - _BEYOND)
    rest = total - end
    ones = (1 << rest % 8) - 1
    if rest >= 8 or (rest and int(data[total // 8 - 1]) & ones != ones):
        raise BitstreamError("corrupted stream: the entropy-coded segment does not end where its last block does")
