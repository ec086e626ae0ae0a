"""JPEG-BASE over whole matrices (JPEG-ACT's earlier variant): DCT, quantiser with divisors, zig-zag order; and its inverse.

Samples, coefficients and divisors are those of a JPEG after its level shift.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.rounding import Rounding
from torch import Tensor

from actcodec.golden import div_quantizer
from actcodec.golden.blocks import tiles
from actcodec.golden.checks import require
from actcodec.golden.dct import dct, idct
from actcodec.golden.zigzag import from_zigzag, to_zigzag

#: Blocks handled at a time, so that the working set stays in a core's cache.
_CHUNK_BLOCKS = 1 << 10


def forward(matrix: Tensor, divisors: Sequence[int], const_bits: int, pass1_bits: int, rounding: Rounding) -> Tensor:
    """Return the quantised coefficients of a padded matrix.

    Parameters
    ----------
    matrix
        int8 (8 * strips, 8 * n), contiguous.
    divisors
        64 divisors 1..255 in zig-zag order.
    const_bits, pass1_bits, rounding
        See :func:`actcodec.golden.dct.dct` and :func:`actcodec.golden.div_quantizer.quantize`.

    Returns
    -------
    int16 (blocks, 64) in zig-zag order, blocks in the order of :func:`actcodec.golden.blocks.tiles`.
    """
    require("matrix", matrix, (torch.int8,))
    table = torch.tensor(divisors, device=matrix.device)
    out = torch.empty(matrix.numel() // BLOCK_VALUES, BLOCK_VALUES, dtype=torch.int16, device=matrix.device)
    strips = max(_CHUNK_BLOCKS // (matrix.shape[1] // BLOCK_SIDE), 1)
    places = torch.split(out, strips * matrix.shape[1] // BLOCK_SIDE)
    for part, place in zip(torch.split(matrix, strips * BLOCK_SIDE), places, strict=True):
        place.copy_(div_quantizer.quantize(to_zigzag(dct(tiles(part), const_bits, pass1_bits)), table, rounding))
    return out


def inverse(coefficients: Tensor, divisors: Sequence[int], const_bits: int, pass1_bits: int) -> Tensor:
    """Return the blocks of samples, int8 (blocks, 8, 8), for coefficients as :func:`forward` returns them."""
    require("coefficients", coefficients, (torch.int16,), (BLOCK_VALUES,))
    table = torch.tensor(divisors, device=coefficients.device)
    out = torch.empty(len(coefficients), BLOCK_SIDE, BLOCK_SIDE, dtype=torch.int8, device=coefficients.device)
    for begin in range(0, coefficients.shape[0], _CHUNK_BLOCKS):
        piece = slice(begin, begin + _CHUNK_BLOCKS)
        restored = from_zigzag(div_quantizer.inverse(coefficients[piece], table))
        out[piece] = idct(restored, const_bits, pass1_bits)
    return out
