"""The entropy coder of JPEG-BASE on whole tensors, by torch."""

from __future__ import annotations

from cdu_spec.huffman import HuffmanTables
from torch import Tensor

from actcodec.golden import entropy_decoder, entropy_encoder


class EntropyCoder:
    """Quantised blocks to an entropy-coded segment, and back. This is the specification of every other way to do it."""

    def encode(self, coefficients: Tensor, huffman: str) -> tuple[HuffmanTables, Tensor]:
        """See :func:`actcodec.golden.entropy_encoder.encode`."""
        return entropy_encoder.encode(coefficients, huffman)

    def decode(self, segment: Tensor, count: int, tables: HuffmanTables) -> Tensor:
        """See :func:`actcodec.golden.entropy_decoder.decode`."""
        return entropy_decoder.decode(segment, count, tables)
