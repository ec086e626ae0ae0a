"""DCT and shift quantiser together, over whole matrices: the same integers as the block functions, several times as fast.

The values of a few strips lie as (8 rows, columns of all strips), so that the column pass is one product with a wide
matrix and the row pass works on runs of 8 neighbours. Powers of two are folded into the matrices and tables: scaling by
them is exact in floating point, so every result is the integer that :mod:`~actcodec.golden.dct` and
:mod:`~actcodec.golden.shift_quantizer` define. Pieces of CHUNK_VALUES values stay in a core's cache.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from cdu_spec.dct import POINTS, pass_shifts
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.rounding import Rounding
from cdu_spec.sfpr import VALUE_MAX, VALUE_MIN
from torch import Tensor

from actcodec.golden import dct
from actcodec.golden.checks import require
from actcodec.golden.movement import copy_transposed
from actcodec.golden.sfpr import CHUNK_VALUES
from actcodec.golden.shift_quantizer import COEFFICIENT_MAX, COEFFICIENT_MIN

#: Blocks side by side in one product of the forward row pass: 16 columns use a core's vector unit, 8 do not.
_ROW_BLOCKS = 2
#: ``c * 2**-shift * (1 + 2**-11)`` rounds to nearest as ``c * 2**-shift`` does with ties away from zero: the factor moves
#: ties off zero, and anything else (at least 2**-shift from the next tie, with |c| < 2**11) across no tie. The product has
#: at most 24 bits, so it is exact in float32.
_TIES_AWAY = 1 + 2.0**-11


def forward(matrix: Tensor, shifts: Sequence[int], const_bits: int, pass1_bits: int, rounding: Rounding) -> Tensor:
    """Quantised coefficients of a padded matrix.

    Parameters
    ----------
    matrix
        int8 (8 * strips, 8 * n), contiguous.
    shifts
        64 shifts in payload order.
    const_bits, pass1_bits, rounding
        See :func:`actcodec.golden.dct.dct` and :func:`actcodec.golden.shift_quantizer.quantize`.

    Returns
    -------
    int8 (blocks, 64), blocks in the order of :func:`actcodec.golden.blocks.tiles`, in each the payload order.
    """
    require("matrix", matrix, (torch.int8,))
    first, second = pass_shifts(const_bits, pass1_bits)
    basis = dct.matrix(const_bits, matrix.device)
    # Row pass: sums stay below 2**23 * 2, exact in float32. Column pass: float64.
    row_matrix = torch.kron(torch.eye(_ROW_BLOCKS, device=matrix.device), basis.T.contiguous() * 2.0**-first).float()
    column_matrix = basis * 2.0**-second
    half_away = rounding is Rounding.HALF_AWAY
    factors = [2.0**-shift * (_TIES_AWAY if half_away else 1) for shift in shifts]
    by_frequency = torch.tensor(factors, dtype=torch.float32, device=matrix.device).view(POINTS, POINTS).T
    width = matrix.shape[1]
    strips = matrix.view(-1, BLOCK_SIDE, width)
    out = torch.empty(strips.shape[0], width, POINTS, dtype=torch.int8, device=matrix.device)
    step = _strips_per_piece(strips)
    table = by_frequency.repeat(1, step * width // BLOCK_SIDE)
    for begin in range(0, strips.shape[0], step):
        piece = strips[begin : begin + step]
        if begin == 0 or piece.shape[0] < step:
            # Working memory is shared by all pieces: fresh memory for each would cost more than the arithmetic.
            values = torch.empty(BLOCK_SIDE, piece.shape[0], width, device=matrix.device)
            columns = torch.empty(POINTS, piece.numel() // POINTS, dtype=torch.float64, device=matrix.device)
            wide_rows, runs = torch.empty_like(columns), values.view(-1, POINTS * _ROW_BLOCKS)
            rows, scaled = torch.empty_like(runs), values.view(columns.shape)
            narrow_rows = rows.view(columns.shape)
            result = torch.empty(columns.shape, dtype=torch.int8, device=matrix.device)
            factor = table[:, : columns.shape[1]]
        values.copy_(piece.transpose(0, 1))
        torch.mm(runs, row_matrix, out=rows)
        wide_rows.copy_(narrow_rows.add_(0.5).floor_())
        torch.mm(column_matrix, wide_rows, out=columns)
        scaled.copy_(columns.add_(0.5).floor_()).mul_(factor).clamp_(VALUE_MIN, VALUE_MAX)
        if half_away:
            scaled.round_()
        copy_transposed(out[begin : begin + step].view(-1, POINTS), result.copy_(scaled))
    return out.view(-1, BLOCK_VALUES)


def inverse(coefficients: Tensor, row_beats: int, shifts: Sequence[int], const_bits: int, pass1_bits: int) -> Tensor:
    """The padded matrix of quantised coefficients; the inverse of :func:`forward`.

    Takes int8 (blocks, 64) as :func:`forward` gives them and the number of blocks per strip; returns int8
    (8 * strips, 8 * row_beats).
    """
    require("coefficients", coefficients, (torch.int8,), (BLOCK_VALUES,))
    first, second = pass_shifts(const_bits, pass1_bits)
    basis = dct.matrix(const_bits, coefficients.device)
    column_matrix = basis.T * 2.0**-first
    row_matrix = basis * 2.0**-second
    width = BLOCK_SIDE * row_beats
    blocks = coefficients.view(-1, row_beats, BLOCK_VALUES)
    out = torch.empty(blocks.shape[0], BLOCK_SIDE, width, dtype=torch.int8, device=coefficients.device)
    step = _strips_per_piece(out)
    factors = torch.tensor([2.0**shift for shift in shifts], dtype=torch.float32, device=coefficients.device)
    table = factors.repeat(step, row_beats, 1)
    for begin in range(0, blocks.shape[0], step):
        piece = blocks[begin : begin + step]
        if begin == 0 or piece.shape[0] < step:
            scaled = torch.empty(piece.shape, device=coefficients.device)
            wide = torch.empty(piece.numel() // POINTS, POINTS, dtype=torch.float64, device=coefficients.device)
            columns = torch.empty(POINTS, piece.numel() // POINTS, dtype=torch.float64, device=coefficients.device)
            runs, by_column = columns.view(-1, POINTS), wide.T
            result = torch.empty(BLOCK_SIDE, piece.shape[0], width, dtype=torch.int8, device=coefficients.device)
            factor = table[: piece.shape[0]]
        scaled.copy_(piece).mul_(factor).clamp_(COEFFICIENT_MIN, COEFFICIENT_MAX)
        wide.copy_(scaled.view(wide.shape))
        torch.mm(column_matrix, by_column, out=columns)
        columns.add_(0.5).floor_()
        torch.mm(runs, row_matrix, out=wide)
        result.copy_(wide.add_(0.5).floor_().clamp_(VALUE_MIN, VALUE_MAX).view(result.shape))
        out[begin : begin + step].copy_(result.transpose(0, 1))
    return out.view(-1, width)


def _strips_per_piece(strips: Tensor) -> int:
    """Strips (S, 8, width) that are handled together."""
    return min(max(CHUNK_VALUES // (BLOCK_SIDE * strips.shape[2]), 1), strips.shape[0])
