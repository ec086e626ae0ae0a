"""Residuals of blocks, from which the scales of mode division follow: float32 sums in the golden model's order."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from cdu_spec.matrix_view import MatrixView
from torch import Tensor

from actcodec.backends.triton.constants import BLOCK_VALUES, LANES
from actcodec.backends.triton.jpeg_act import block_rows
from actcodec.backends.triton.launch import PROGRAM_BLOCKS, bits_of, launch, programs_for
from actcodec.backends.triton.values import magnitude_bits, number


@triton.jit
def _halves_added(x: tl.tensor) -> tl.tensor:
    """Add the first m and the last m of (n, 2 * m, k), (n, m, k)."""
    halves = tl.reshape(x, (x.shape[0], 2, x.shape[1] // 2, x.shape[2]))
    first, last = tl.split(tl.permute(halves, (0, 2, 3, 1)))
    return first + last


@triton.jit
def _sum_of_eight(x: tl.tensor) -> tl.tensor:
    """Add the eight of (n, 8, k) to each other half by half, (n, 1, k)."""
    return _halves_added(_halves_added(_halves_added(x)))


@triton.jit
def _residuals_kernel(
    x_ptr: tl.tensor,
    k_ptr: tl.tensor,
    largest_ptr: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    channels: tl.tensor,
    channel_rows: tl.tensor,
    per_strip: tl.tensor,
    tile_blocks: tl.constexpr,
) -> None:
    block = tl.program_id(0).to(tl.int64) * tile_blocks + tl.arange(0, tile_blocks)
    row, column = block_rows(block, per_strip)
    inside = row < rows
    # Blocks are padded with the last value of each row and the last row.
    there, column = tl.minimum(row, rows - 1), tl.minimum(column, columns - 1)
    channel = there // channel_rows % channels
    x = number(tl.load(x_ptr + there[:, :, None] * columns + column[:, None, :]))
    values = x * tl.load(k_ptr + channel)[:, :, None]
    by_column = tl.reshape(_sum_of_eight(values), (tile_blocks, LANES, 1))
    # The factor is a power of two: as exact as the division.
    mean = _sum_of_eight(by_column) * (1 / BLOCK_VALUES)
    distance = tl.max(magnitude_bits(values - mean), axis=2)
    tl.atomic_max(largest_ptr + channel, distance, mask=inside)


def residual_maxima(x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
    """Return the largest residuals as :func:`actcodec.golden.block_statistics.residual_maxima` does."""
    largest = torch.zeros(view.channels, dtype=torch.int32, device=x.device)
    layout = (view.rows, view.columns, view.channels, view.channel_rows, view.row_beats)
    launch(
        _residuals_kernel,
        programs_for(view.blocks, PROGRAM_BLOCKS),
        bits_of(x),
        k,
        largest,
        *layout,
        tile_blocks=PROGRAM_BLOCKS,
    )
    return largest.view(torch.float32)
