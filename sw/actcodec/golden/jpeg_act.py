"""DCT and shift quantiser together, over whole matrices: the same integers as the block functions, several times as fast.

The values of a few strips lie as (8 rows, columns of all strips), so that the column pass is one product with a wide
matrix and the row pass works on runs of 8 neighbours. Powers of two are folded into the matrices and tables: scaling by
them is exact in floating point, so every result is the integer that :mod:`~actcodec.golden.dct` and
:mod:`~actcodec.golden.shift_quantizer` define. Pieces of CHUNK_VALUES values stay in a core's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from cdu_spec.dct import POINTS, pass_shifts
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.rounding import Rounding
from cdu_spec.sfpr import VALUE_MAX, VALUE_MIN
from torch import Tensor

from actcodec.golden import dct
from actcodec.golden.checks import require
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
    strips = matrix.view(-1, BLOCK_SIDE, matrix.shape[1])
    half_away = rounding is Rounding.HALF_AWAY
    table = _table([2.0**-shift * (_TIES_AWAY if half_away else 1) for shift in shifts], strips)
    out = torch.empty(strips.shape[0], matrix.shape[1], POINTS, dtype=torch.int8, device=matrix.device)
    for piece, result in _pieces(strips, out):
        rows = piece.transpose(0, 1).to(torch.float32, memory_format=torch.contiguous_format)
        rows = (rows.view(-1, POINTS * _ROW_BLOCKS) @ row_matrix).add_(0.5).floor_()
        columns = column_matrix @ rows.view(POINTS, -1).to(torch.float64)
        scaled = columns.add_(0.5).floor_().to(torch.float32).mul_(table[:, : columns.shape[1]])
        scaled.clamp_(VALUE_MIN, VALUE_MAX)
        if half_away:
            scaled.round_()
        result.view(-1, POINTS).copy_(scaled.to(torch.int8).T)
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
    strips = coefficients.reshape(-1, width, POINTS)
    out = torch.empty(strips.shape[0], BLOCK_SIDE, width, dtype=torch.int8, device=coefficients.device)
    table = _table([2.0**shift for shift in shifts], out)
    for result, piece in _pieces(out, strips):
        scaled = piece.reshape(-1, POINTS).T.to(torch.float32, memory_format=torch.contiguous_format)
        scaled = scaled.mul_(table[:, : scaled.shape[1]]).clamp_(COEFFICIENT_MIN, COEFFICIENT_MAX)
        columns = (column_matrix @ scaled.to(torch.float64)).add_(0.5).floor_()
        rows = (columns.view(-1, POINTS) @ row_matrix).add_(0.5).floor_().clamp_(VALUE_MIN, VALUE_MAX)
        result.copy_(rows.to(torch.int8).view(BLOCK_SIDE, -1, width).transpose(0, 1))
    return out.view(-1, width)


def _strips_per_piece(strips: Tensor) -> int:
    return max(CHUNK_VALUES // (BLOCK_SIDE * strips.shape[2]), 1)


def _pieces(strips: Tensor, coefficients: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Strips (S, 8, width) and their coefficients (S, width, 8) in pieces that fit the cache."""
    step = _strips_per_piece(strips)
    for begin in range(0, strips.shape[0], step):
        yield strips[begin : begin + step], coefficients[begin : begin + step]


def _table(entries: Sequence[float], strips: Tensor) -> Tensor:
    """64 factors in payload order laid out as a piece of coefficients, float32 (8 vertical frequencies, columns)."""
    by_frequency = torch.tensor(entries, dtype=torch.float32, device=strips.device).view(POINTS, POINTS).T
    blocks = min(_strips_per_piece(strips), strips.shape[0]) * strips.shape[2] // BLOCK_SIDE
    return by_frequency.repeat(1, blocks)
