"""Arrangements of :class:`cdu_spec.matrix_view.MatrixView`: tensors, matrices, beats and blocks."""

from __future__ import annotations

import torch
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES, TILE_BLOCKS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from torch import Tensor


def by_channel(values: Tensor, view: MatrixView) -> Tensor:
    """Return a tensor as (outer, channels, inner), one scale per index of axis 1."""
    if view.channels == 1:
        return values.reshape(1, 1, -1)
    return values.reshape(-1, view.channels, view.channel_rows * view.columns)


def padded(values: Tensor, view: MatrixView) -> Tensor:
    """Return a tensor as the matrix with its padding, (padded rows, 8 * row beats), same dtype.

    The padding is zeros, unless that would widen the range of a block: division repeats the last value of each row and then the
    last row, actnn the last value of the tensor. The padding of a linear sequence to whole blocks is not
    part of a row; :func:`linear_blocks` adds it.
    """
    width = view.row_beats * LANES
    if values.numel() == view.padded_rows * width:
        return values.reshape(view.padded_rows, width)
    if view.mode is Mode.ACTNN:
        flat = values.reshape(-1)
        full = flat.new_empty(view.padded_rows * width)
        full[: flat.numel()] = flat
        full[flat.numel() :] = flat[-1]
        return full.view(view.padded_rows, width)
    matrix = values.reshape(view.rows, view.columns)
    out = values.new_zeros(view.padded_rows, width)
    out[: view.rows, : view.columns] = matrix
    if view.mode is Mode.DIVISION:
        out[: view.rows, view.columns :] = matrix[:, -1:]
        out[view.rows :] = out[view.rows - 1]
    return out


def unpadded(matrix: Tensor, view: MatrixView, count: int) -> Tensor:
    """Return the ``count`` values of a tensor without the padding, in order; inverse of :func:`padded`."""
    return matrix[: view.rows, : view.columns].reshape(-1)[:count]


def tiles(matrix: Tensor) -> Tensor:
    """Return a padded matrix (8 * strips, 8 * n) as blocks (B, 8, 8) [row][column]: strip by strip, left to right."""
    rows, columns = matrix.shape
    grid = matrix.view(rows // BLOCK_SIDE, BLOCK_SIDE, columns // BLOCK_SIDE, BLOCK_SIDE)
    return grid.transpose(1, 2).reshape(-1, BLOCK_SIDE, BLOCK_SIDE)


def untiled(blocks: Tensor, view: MatrixView) -> Tensor:
    """Return blocks (B, 8, 8) as the padded matrix; inverse of :func:`tiles`."""
    grid = blocks.reshape(-1, view.row_beats, BLOCK_SIDE, BLOCK_SIDE).transpose(1, 2)
    return grid.reshape(view.padded_rows, view.row_beats * LANES)


def linear_blocks(matrix: Tensor, view: MatrixView) -> Tensor:
    """Return a padded matrix, row after row, as blocks (B, 64) of consecutive values, zeros after the end."""
    flat = matrix.reshape(-1)
    if flat.numel() == view.blocks * BLOCK_VALUES:
        return flat.view(-1, BLOCK_VALUES)
    out = flat.new_zeros(view.blocks * BLOCK_VALUES)
    out[: flat.numel()] = flat
    return out.view(-1, BLOCK_VALUES)


def to_payload_order(blocks: Tensor) -> Tensor:
    """Return blocks (B, 8, 8) [vertical][horizontal frequency] as (B, 64), column by column (``COEFFICIENT_ORDER``)."""
    return blocks.transpose(1, 2).reshape(-1, BLOCK_VALUES)


def to_beats(matrix: Tensor, view: MatrixView) -> Tensor:
    """Return a padded matrix as beats (view.beats, 8) in the feeding order of the hardware.

    Modes with tiles: strip by strip (8 rows), in a strip tile by tile (32 columns; the last tile may be narrower), in a tile
    row by row. Other modes: row by row, followed by zero beats up to a whole block if the mode has masks. The result shares
    memory with the matrix if nothing has to move.
    """
    if _in_order(view):
        if matrix.numel() == view.beats * LANES:
            return matrix.view(-1, LANES)
        beats = matrix.new_zeros(view.beats, LANES)
        beats[: view.padded_rows * view.row_beats] = matrix.view(-1, LANES)
        return beats
    strips = matrix.view(-1, BLOCK_SIDE, view.row_beats, LANES)
    parts = [part.transpose(1, 2).reshape(strips.shape[0], -1, LANES) for part in _whole_and_last(strips)]
    return torch.cat(parts, 1).view(-1, LANES)


def from_beats(beats: Tensor, view: MatrixView) -> Tensor:
    """Return the padded matrix of beats (view.beats, 8); inverse of :func:`to_beats`, sharing memory in the same cases."""
    width = view.row_beats * LANES
    if _in_order(view):
        return beats[: view.padded_rows * view.row_beats].reshape(view.padded_rows, width)
    strips = beats.view(-1, BLOCK_SIDE * view.row_beats, LANES)
    matrix = beats.new_empty(strips.shape[0], BLOCK_SIDE, view.row_beats, LANES)
    begin = 0
    for part in _whole_and_last(matrix):
        shape = part.transpose(1, 2).shape
        end = begin + shape[1] * shape[2] * (shape[3] // LANES)
        part.transpose(1, 2).copy_(strips[:, begin:end].reshape(shape))
        begin = end
    return matrix.view(view.padded_rows, width)


def _in_order(view: MatrixView) -> bool:
    """Return whether the feeding order is row by row: there are no tiles, or only one fits into a row."""
    return not view.mode.in_tiles or view.row_beats <= TILE_BLOCKS


def _whole_and_last(strips: Tensor) -> list[Tensor]:
    """Return strips (S, 8, row beats, 8) as views (S, 8, tiles, tile columns): tiles of 32 columns, then a narrower one."""
    whole = strips.shape[2] // TILE_BLOCKS * TILE_BLOCKS
    parts = []
    if whole:
        grid = (*strips.shape[:2], whole // TILE_BLOCKS, TILE_BLOCKS * LANES)
        parts.append(strips[:, :, :whole].view(grid))
    if whole < strips.shape[2]:
        parts.append(strips[:, :, whole:].flatten(2).unsqueeze(2))
    return parts
