"""Average pooling with the upsampling that undoes it: one grid of cells for both, whatever the size of a map (DIVISION).

A map is what one range covers: an image of one channel in tensors (N, C, H, W), the features of one sample in (N, F), of one
token in (N, S, F). An axis shorter than the block is one part. Otherwise it is cut into nearly equal parts, the nearest whole
numbers below or above ``extent / block``, from map to map in such turns that a part has ``block`` values on average: the paper
counts as if every map had a whole number of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

import torch
from cdu_spec.geometry import BLOCK_SIDE
from torch import Tensor

#: Ranks of the tensors that have maps.
MAP_RANKS = (2, 3, 4)
_IMAGE_RANK = MAP_RANKS[-1]


def map_size(shape: Sequence[int]) -> tuple[int, int]:
    """Height and width of the maps of a tensor; those of features have height 1."""
    return (shape[2], shape[3]) if len(shape) == _IMAGE_RANK else (1, shape[-1])


def pooling_cells(
    shape: Sequence[int], block: int = BLOCK_SIDE, device: torch.device | str = "cpu", of_maps: slice | None = None
) -> Tensor:
    """Number of the cell of each value, int64 (values,): map by map, row by row.

    Parameters
    ----------
    shape
        Of a tensor of rank 2 to 4, every extent 1 or more.
    block
        Side of a cell in values, 1 or more (paper: B).
    device
        Of the result.
    of_maps
        Only of these maps; all unless given.
    """
    height, width = map_size(shape)
    maps = torch.arange(prod(shape) // (height * width), device=device)
    rows, row_counts = _parts(height, block, device)
    columns, column_counts = _parts(width, block, device)
    row_turn, column_turn = maps % len(rows), maps // len(rows) % len(columns)
    across = column_counts[column_turn]
    cells = row_counts[row_turn] * across
    first = cells.cumsum(0) - cells
    here = slice(None) if of_maps is None else of_maps
    down = rows[row_turn[here]] * across[here, None]
    return (first[here, None, None] + down[:, :, None] + columns[column_turn[here]][:, None, :]).flatten()


def cell_means(values: Tensor, cells: Tensor) -> Tensor:
    """Mean of the values of each cell, float32 (cells,), first to last; ``values`` are floats (values,), added in float64."""
    cells = cells - cells[0]
    count = int(cells[-1]) + 1
    sums = torch.zeros(count, dtype=torch.float64, device=values.device).index_add_(0, cells, values.to(torch.float64))
    return (sums / torch.bincount(cells, minlength=count)).to(torch.float32)


def _parts(extent: int, block: int, device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Part of each position of an axis in each turn, int64 (turns, extent), and the number of parts (turns,)."""
    turns = torch.arange(block // gcd(extent, block) if extent > block else 1, device=device)
    counts = ((turns + 1) * extent // block - turns * extent // block).clamp_min(1)
    return torch.arange(extent, device=device) * counts[:, None] // extent, counts
