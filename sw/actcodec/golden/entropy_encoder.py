"""Entropy-coded segment of a grayscale scan of baseline JPEG (ITU-T T.81, F.1.2), without restart intervals."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from cdu_spec.huffman import STANDARD, HuffmanTable, HuffmanTables
from cdu_spec.jpeg import MARKER
from torch import Tensor

from actcodec.golden.huffman import optimal_table
from actcodec.golden.run_length import ALPHABET, DC_BASE, symbols

#: Kinds of tables.
STANDARD_TABLES, OPTIMAL_TABLES = "standard", "optimal"
HUFFMAN_KINDS = (STANDARD_TABLES, OPTIMAL_TABLES)
#: Number of blocks, words or bytes processed at a time.
_CHUNK = 1 << 8
_WORD_BITS = 32
_WORD_BYTES = _WORD_BITS // 8


def encode(coefficients: Tensor, huffman: str = STANDARD_TABLES) -> tuple[HuffmanTables, Tensor]:
    """Return tables and entropy-coded segment of blocks.

    Parameters
    ----------
    coefficients
        int16 (B, 64), B at least 1, as :func:`actcodec.golden.run_length.symbols` takes them.
    huffman
        ``standard`` tables (Annex K.3), or the ``optimal`` ones for these blocks.

    Returns
    -------
    The tables, and uint8 (n,): codes and extra bits, filled with ones to a whole byte, a zero byte after every FF.
    """
    frequencies = torch.stack([torch.bincount(numbers, minlength=ALPHABET) for numbers, _ in _symbols(coefficients)]).sum(0)
    tables = tables_for(frequencies, huffman)
    return tables, _stuffed(_packed(coefficients, frequencies, tables))


def _symbols(coefficients: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield symbols and extra bits piece by piece, computed anew each time: together they are as large as the tensor."""
    previous = 0
    for blocks in torch.split(coefficients, _CHUNK):
        yield symbols(blocks, previous)
        previous = int(blocks[-1, 0])


def tables_for(frequencies: Tensor, huffman: str) -> HuffmanTables:
    """Return the ``standard`` tables, or the ``optimal`` ones for symbols with these frequencies, int64 (512,)."""
    if huffman == STANDARD_TABLES:
        return STANDARD
    counts = frequencies.tolist()
    return HuffmanTables(optimal_table(counts[DC_BASE:]), optimal_table(counts[:DC_BASE]))


def _packed(coefficients: Tensor, frequencies: Tensor, tables: HuffmanTables) -> Tensor:
    """Return the codes of symbols and their extra bits as bytes, first bit at the top of a byte, padded with ones."""
    device = coefficients.device
    codes, lengths = code_arrays(tables, device)
    total = int((frequencies * (lengths + (torch.arange(ALPHABET, device=device) & 15))).sum())
    words = torch.zeros(total // _WORD_BITS + 2, dtype=torch.int64, device=device)
    begin = 0
    for part, bits in _symbols(coefficients):
        index, sizes = part.to(torch.int64), part.to(torch.int64) & 15
        taken = lengths[index] + sizes
        ends = taken.cumsum(0) + begin
        starts = ends - taken
        # A code and its extra bits have at most 16 + 11 bits: two words hold them wherever they begin.
        window = (codes[index] << sizes | bits) << (2 * _WORD_BITS - taken - starts % _WORD_BITS)
        where = starts // _WORD_BITS
        words.index_add_(0, where, window >> _WORD_BITS & 0xFFFFFFFF)
        words.index_add_(0, where + 1, window & 0xFFFFFFFF)
        begin = int(ends[-1])
    shifts = torch.arange(_WORD_BITS - 8, -1, -8, device=words.device)
    whole = torch.empty(len(words), _WORD_BYTES, dtype=torch.uint8, device=device)
    for first in range(0, len(words), _CHUNK):
        whole[first : first + _CHUNK] = words[first : first + _CHUNK, None] >> shifts & 0xFF
    whole = whole.flatten()[: -(-total // 8)]
    whole[-1] |= (1 << (-total % 8)) - 1
    return whole


def code_arrays(tables: HuffmanTables, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return code and length of each symbol of the alphabet, int64 (512,) each."""
    codes, lengths = torch.zeros(2, ALPHABET, dtype=torch.int64)
    for base, table in ((0, tables.ac), (DC_BASE, tables.dc)):
        _fill(codes, lengths, base, table)
    return codes.to(device), lengths.to(device)


def _fill(codes: Tensor, lengths: Tensor, base: int, table: HuffmanTable) -> None:
    for symbol, (code, length) in table.codes.items():
        codes[base + symbol] = code
        lengths[base + symbol] = length


def _stuffed(whole: Tensor) -> Tensor:
    """Insert a zero byte after every FF."""
    done = []
    for part in torch.split(whole, _CHUNK):
        marks = (part == MARKER).to(torch.int64)
        out = torch.zeros(part.numel() + int(marks.sum()), dtype=torch.uint8, device=part.device)
        out[torch.arange(part.numel(), device=part.device) + marks.cumsum(0) - marks] = part
        done.append(out)
    return torch.cat(done)
