"""Decoder of an entropy-coded segment of unknown number of blocks, up to its first error, as a decoder in hardware works.

:mod:`actcodec.golden.entropy_decoder` reads segments of known numbers of blocks fast, and refuses all others.
"""

from __future__ import annotations

import torch
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.huffman import MAX_CODE_BITS, STANDARD, HuffmanTable, HuffmanTables
from cdu_spec.jpeg import DC_MAX, DC_MIN, EOB, MARKER, ZRL
from torch import Tensor


class _WrongError(Exception):
    """Raised for a segment that is not one of a scan."""


class _Bits:
    """Bits of a segment, first bit at the top of a byte. A marker ends them, and its FF is the last of them."""

    def __init__(self, segment: bytes) -> None:
        data, marked = bytearray(), False
        for byte in segment:
            if marked and byte:
                break
            if not marked:
                data.append(byte)
            marked = byte == MARKER
        self.is_marked = marked
        self._left = "".join(f"{byte:08b}" for byte in data)
        self._at = 0

    @property
    def is_filling(self) -> bool:
        """Return whether the remaining bits are the padding of the last byte."""
        left = self._left[self._at : self._at + 8]
        return len(left) < 8 and "0" not in left

    def take(self, count: int) -> str:
        """Return the next bits; raise _WrongError if there are too few."""
        taken = self._left[self._at : self._at + count]
        if len(taken) < count:
            raise _WrongError
        self._at += count
        return taken

    def symbol(self, codes: dict[str, int]) -> int:
        """Return the symbol of the next code; raise _WrongError if there is none."""
        code = ""
        while len(code) < MAX_CODE_BITS:
            code += self.take(1)
            if code in codes:
                return codes[code]
        raise _WrongError

    def value(self, size: int) -> int:
        """Return the number of the next ``size`` extra bits (T.81, F.2.2.1, EXTEND)."""
        bits = self.take(size)
        return 0 if not bits else int(bits, 2) - (0 if bits[0] == "1" else (1 << size) - 1)


def blocks_of(segment: bytes, tables: HuffmanTables = STANDARD) -> tuple[Tensor, bool]:
    """Return the blocks of a scan up to the first error, int16 (n, 64) in zig-zag order, and whether there was an error.

    Errors are those of :func:`actcodec.golden.entropy_decoder.decode`, and a segment without blocks. If bits other than the
    padding of a byte follow the last block, they are read as another block.
    """
    bits = _Bits(segment)
    dc, ac = ({f"{code:0{length}b}": symbol for symbol, (code, length) in table.codes.items()} for table in _both(tables))
    found: list[list[int]] = []
    previous = 0
    try:
        while bits.is_marked or not found or not bits.is_filling:
            block = _block(bits, dc, ac, previous)
            previous = block[0]
            found.append(block)
    except _WrongError:
        return _tensor(found), True
    return _tensor(found), False


def _both(tables: HuffmanTables) -> tuple[HuffmanTable, HuffmanTable]:
    return tables.dc, tables.ac


def _tensor(blocks: list[list[int]]) -> Tensor:
    return torch.tensor(blocks, dtype=torch.int16).view(-1, BLOCK_VALUES)


def _block(bits: _Bits, dc: dict[str, int], ac: dict[str, int], previous_dc: int) -> list[int]:
    """Return one block; raise _WrongError for bits that are no block."""
    block = [0] * BLOCK_VALUES
    block[0] = previous_dc + bits.value(bits.symbol(dc))
    if not DC_MIN <= block[0] <= DC_MAX:
        raise _WrongError
    place, symbol = 1, -1
    while place < BLOCK_VALUES:
        before, symbol = symbol, bits.symbol(ac)
        if symbol == EOB:
            if before == ZRL:
                raise _WrongError
            break
        place += symbol >> 4
        # A ZRL must leave room for a coefficient.
        if place + (symbol == ZRL) >= BLOCK_VALUES:
            raise _WrongError
        block[place] = bits.value(symbol & 15)
        place += 1
    return block
