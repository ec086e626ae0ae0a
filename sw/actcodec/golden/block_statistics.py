"""Statistics of the range finder, mean, least and greatest value of a block, and residuals of whole tensors."""

from __future__ import annotations

import torch
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES
from cdu_spec.matrix_view import MatrixView
from torch import Tensor

from actcodec.golden.blocks import padded
from actcodec.golden.checks import require
from actcodec.golden.extremes import extremes
from actcodec.golden.pieces import CHUNK_VALUES
from actcodec.golden.sfpr import FLOATS

_MEAN_SHIFT = BLOCK_VALUES.bit_length() - 1


def block_mean(blocks: Tensor) -> Tensor:
    """Return the mean of each block rounded half up, ``(sum + 32) >> 6``: int16 (B, 64) to int32 (B,), -32768..32767."""
    require("blocks", blocks, (torch.int16,), (BLOCK_VALUES,))
    return (blocks.sum(1, dtype=torch.int32) + BLOCK_VALUES // 2) >> _MEAN_SHIFT


def least_and_greatest(groups: Tensor) -> tuple[Tensor, Tensor]:
    """Return the least and greatest value of each group: int16 (G, n) to int32 (G,) each."""
    require("groups", groups, (torch.int16,))
    least, greatest = extremes(groups, 1)
    return least.to(torch.int32), greatest.to(torch.int32)


def residual_maxima(x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
    """Return the greatest distance of a value of each channel from its 8x8 block's mean, in units of quantised values.

    All operations are float32, where the order of additions matters: the halves of each column are added to each other until
    one number is left, then those of the row of sums, so that every device and every backend computes the same.

    Parameters
    ----------
    x
        Finite floats of the view's size; the view is of mode division, whose padding repeats values.
    view
        View of ``x``, a :class:`~cdu_spec.matrix_view.MatrixView`.
    k
        Multipliers, float32 (channels,).

    Returns
    -------
    float32 (channels,).
    """
    require("x", x, FLOATS)
    require("k", k, (torch.float32,))
    matrix = x.reshape(view.rows, view.columns)
    by_row = torch.empty(view.rows, device=x.device)
    step = max(CHUNK_VALUES // (BLOCK_SIDE * view.columns), 1) * BLOCK_SIDE
    for top in range(0, view.rows, step):
        part = matrix[top : top + step].to(torch.float32)
        strips = MatrixView(len(part), view.columns, 1, 1, view.mode)
        rows = torch.arange(top, top + strips.padded_rows, device=x.device).clamp_max_(view.rows - 1)
        scales = k[rows // view.channel_rows % view.channels]
        grid = (padded(part, strips) * scales[:, None]).view(-1, BLOCK_SIDE, view.row_beats, LANES)
        total = grid
        for axis in (1, 3):
            while total.shape[axis] > 1:
                left, right = total.chunk(2, axis)
                total = left + right
        by_row[top : top + step] = (grid - total / BLOCK_VALUES).abs_().amax((2, 3)).flatten()[: len(part)]
    return by_row.view(-1, view.channels, view.channel_rows).amax((0, 2))
