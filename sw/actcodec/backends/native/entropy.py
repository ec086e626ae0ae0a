"""Entropy coder of JPEG-BASE by compiled kernels, equal to the golden model, which reports errors in blocks and segments."""

from __future__ import annotations

import torch
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.huffman import HuffmanTables
from torch import Tensor

from actcodec.backends.native.host import host
from actcodec.backends.native.kernels import kernels
from actcodec.golden import entropy_decoder, entropy_encoder
from actcodec.golden.checks import require
from actcodec.golden.entropy_encoder import STANDARD_TABLES, code_arrays, tables_for
from actcodec.golden.huffman import lookup
from actcodec.golden.run_length import ALPHABET


def encode(coefficients: Tensor, huffman: str = STANDARD_TABLES) -> tuple[HuffmanTables, Tensor]:
    """Compute :func:`actcodec.golden.entropy_encoder.encode`."""
    require("coefficients", coefficients, (torch.int16,), (BLOCK_VALUES,))
    blocks = host(coefficients)
    frequencies = torch.zeros(ALPHABET, dtype=torch.int64)
    if not kernels()("symbol_counts", blocks, len(blocks), frequencies):
        return entropy_encoder.encode(coefficients, huffman)
    tables = tables_for(frequencies, huffman)
    codes, lengths = code_arrays(tables, blocks.device)
    bits = int((frequencies * (lengths + (torch.arange(ALPHABET) & 15))).sum())
    # A zero byte may follow every byte.
    room = torch.empty(2 * -(-bits // 8), dtype=torch.uint8)
    written = kernels()("entropy_encode", blocks, len(blocks), codes, lengths, room)
    return tables, room[:written].clone()


def decode(segment: Tensor, count: int, tables: HuffmanTables) -> Tensor:
    """Compute :func:`actcodec.golden.entropy_decoder.decode`."""
    require("segment", segment, (torch.uint8,))
    segment = host(segment)
    # Each block takes at least a bit, so that a wrong shape does not allocate more.
    if count <= 8 * segment.numel():
        lookups = [torch.from_numpy(part) for table in (tables.dc, tables.ac) for part in lookup(table)]
        coefficients = torch.zeros(count, BLOCK_VALUES, dtype=torch.int16)
        if kernels()("entropy_decode", segment, segment.numel(), count, *lookups, coefficients):
            return coefficients
    return entropy_decoder.decode(segment, count, tables)
