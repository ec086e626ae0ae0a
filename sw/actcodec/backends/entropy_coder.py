"""Entropy coder of JPEG-BASE on whole tensors, by torch."""

from __future__ import annotations

from cdu_spec.huffman import HuffmanTables
from torch import Tensor

from actcodec.golden import entropy_decoder, entropy_encoder


class EntropyCoder:
    """Coder between quantised blocks and an entropy-coded segment; the specification of every other implementation."""

    def encode(self, coefficients: Tensor, huffman: str) -> tuple[HuffmanTables, Tensor]:
        """Return tables and segment of blocks: :func:`actcodec.golden.entropy_encoder.encode`."""
        return entropy_encoder.encode(coefficients, huffman)

    def decode(self, segment: Tensor, count: int, tables: HuffmanTables) -> Tensor:
        """Return the blocks of a segment: :func:`actcodec.golden.entropy_decoder.decode`."""
        return entropy_decoder.decode(segment, count, tables)
