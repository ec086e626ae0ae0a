"""DCT and shift quantiser in one, over whole matrices: the same integers as the block functions, several times as fast.

Axes are kept in the order in which each pass is one product with a wide matrix, and blocks are reordered once they are bytes.
Powers of two are folded into matrices and tables: scaling by them is exact in floating point, so every result is the integer
that :mod:`~actcodec.golden.dct` and :mod:`~actcodec.golden.shift_quantizer` define. All products are float64, which is exact
and, unlike float32, unaffected by autocast and reduced-precision settings. Pieces of CHUNK_VALUES values stay in a core's
cache.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from cdu_spec.dct import POINTS, pass_shifts
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.reconstruction import offsets
from cdu_spec.rounding import Rounding
from cdu_spec.sfpr import VALUE_MAX, VALUE_MIN
from torch import Tensor

from actcodec.golden import dct
from actcodec.golden.checks import require
from actcodec.golden.movement import copy_permuted
from actcodec.golden.pieces import CHUNK_VALUES
from actcodec.golden.shift_quantizer import COEFFICIENT_MAX, COEFFICIENT_MIN

#: ``c * 2**-shift * (1 + 2**-11)`` rounds to nearest as ``c * 2**-shift`` does with ties away from zero: the factor moves
#: ties off zero, and anything else (at least 2**-shift from the next tie, with |c| < 2**11) across no tie. The product is
#: exact in float64.
_TIES_AWAY = 1 + 2.0**-11


def forward(matrix: Tensor, shifts: Sequence[int], const_bits: int, pass1_bits: int, rounding: Rounding) -> Tensor:
    """Return the quantised coefficients of a padded matrix.

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
    row_matrix = basis * 2.0**-first
    column_matrices = (basis * 2.0**-second).expand(POINTS, POINTS, POINTS)
    half_away = rounding is Rounding.HALF_AWAY
    factors = [2.0**-shift * (_TIES_AWAY if half_away else 1) for shift in shifts]
    factor = torch.tensor(factors, dtype=torch.float64, device=matrix.device)[:, None]
    width = matrix.shape[1]
    strips = matrix.view(-1, BLOCK_SIDE, width)
    out = torch.empty(strips.shape[0], width // BLOCK_SIDE, BLOCK_VALUES, dtype=torch.int8, device=matrix.device)
    step = _strips_per_piece(strips.shape[0], width)
    for begin in range(0, strips.shape[0], step):
        piece = strips[begin : begin + step]
        if begin == 0 or piece.shape[0] < step:
            # Working memory is shared by all pieces: fresh memory for each would cost more than the arithmetic.
            values = torch.empty(BLOCK_SIDE, piece.shape[0], width, dtype=torch.float64, device=matrix.device)
            by_row = values.view(-1, POINTS).T
            # Axes: horizontal frequency, row in the block, block; then both frequencies, block.
            rows = torch.empty(POINTS, BLOCK_SIDE, piece.numel() // BLOCK_VALUES, dtype=torch.float64, device=matrix.device)
            flat_rows, columns = rows.view(POINTS, -1), values.view(rows.shape)
            scaled = columns.view(BLOCK_VALUES, -1)
            result = torch.empty(scaled.shape, dtype=torch.int8, device=matrix.device)
        values.copy_(piece.transpose(0, 1))
        torch.mm(row_matrix, by_row, out=flat_rows)
        rows.add_(0.5).floor_()
        torch.bmm(column_matrices, rows, out=columns)
        scaled.add_(0.5).floor_().mul_(factor).clamp_(VALUE_MIN, VALUE_MAX)
        if half_away:
            scaled.round_()
        copy_permuted(out[begin : begin + step].view(-1, BLOCK_VALUES), result.copy_(scaled).T)
    return out.view(-1, BLOCK_VALUES)


def inverse(
    coefficients: Tensor, row_beats: int, shifts: Sequence[int], const_bits: int, pass1_bits: int, point: int = 0
) -> Tensor:
    """Return the padded matrix of quantised coefficients; inverse of :func:`forward`.

    Takes int8 (blocks, 64) as :func:`forward` returns them, the number of blocks per strip, and the reconstruction point in
    eighths of a step, 0 to 4; returns int8 (8 * strips, 8 * row_beats).
    """
    require("coefficients", coefficients, (torch.int8,), (BLOCK_VALUES,))
    first, second = pass_shifts(const_bits, pass1_bits)
    basis = dct.matrix(const_bits, coefficients.device)
    column_matrix = basis.T * 2.0**-first
    row_matrix = basis.T * 2.0**-second
    width = BLOCK_SIDE * row_beats
    blocks = coefficients.view(-1, row_beats, BLOCK_VALUES)
    out = torch.empty(blocks.shape[0], BLOCK_SIDE, row_beats, POINTS, dtype=torch.int8, device=coefficients.device)
    step = _strips_per_piece(out.shape[0], width)
    factors = torch.tensor([2.0**shift for shift in shifts], dtype=torch.float64, device=coefficients.device)
    table = factors.repeat(step, row_beats, 1)
    added = torch.tensor(offsets(shifts, point), dtype=torch.float64, device=coefficients.device)
    for begin in range(0, blocks.shape[0], step):
        piece = blocks[begin : begin + step]
        if begin == 0 or piece.shape[0] < step:
            wide = torch.empty(piece.numel() // POINTS, POINTS, dtype=torch.float64, device=coefficients.device)
            columns = torch.empty(POINTS, piece.numel() // POINTS, dtype=torch.float64, device=coefficients.device)
            samples, by_column, by_row = torch.empty_like(columns), wide.T, columns.view(-1, POINTS).T
            # Axes of the result: column in the block, row in the strip, strip, block.
            result = torch.empty(POINTS, POINTS, *piece.shape[:2], dtype=torch.int8, device=coefficients.device)
            scaled, factor = wide.view(piece.shape), table[: piece.shape[0]]
        scaled.copy_(piece).mul_(factor)
        if point:
            scaled.add_(piece.sign() * added)
        scaled.clamp_(COEFFICIENT_MIN, COEFFICIENT_MAX)
        torch.mm(column_matrix, by_column, out=columns)
        columns.add_(0.5).floor_()
        torch.mm(row_matrix, by_row, out=samples)
        result.copy_(samples.add_(0.5).floor_().clamp_(VALUE_MIN, VALUE_MAX).view(result.shape))
        copy_permuted(out[begin : begin + step], result.permute(2, 1, 3, 0))
    return out.view(-1, width)


def _strips_per_piece(strips: int, width: int) -> int:
    """Return the number of strips of 8 rows of ``width`` values that are processed together."""
    return min(max(CHUNK_VALUES // (BLOCK_SIDE * width), 1), strips)
