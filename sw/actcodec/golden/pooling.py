"""Average pooling and the matching upsampling: one grid of cells for both, whatever the size of a map (DIVISION).

A map is the values of one range: an image of one channel in tensors (N, C, H, W), the features of one sample in (N, F), those
of one token in (N, S, F). An axis shorter than the block is one part. Otherwise it is cut into nearly equal parts; their number
is ``extent / block`` rounded down or up, alternating from map to map so that a part has ``block`` values on average. The paper
counts as if every map had a whole number of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

import torch
from cdu_spec.geometry import BLOCK_SIDE
from torch import Tensor

#: Ranks of the tensors that have maps.
MAP_RANKS = (2, 3, 4)
_IMAGE_RANK = MAP_RANKS[-1]


def map_size(shape: Sequence[int]) -> tuple[int, int]:
    """Return height and width of the maps of a tensor; maps of features have height 1."""
    return (shape[2], shape[3]) if len(shape) == _IMAGE_RANK else (1, shape[-1])


@dataclass(frozen=True, eq=False)
class Pooling:
    """Grid of cells of a tensor of rank 2 to 4, every extent 1 or more."""

    height: int  #: height of a map
    width: int
    rows: Tensor  #: int64 (turns, height): part of each row of a map in each turn
    columns: Tensor  #: int64 (turns, width)
    across: Tensor  #: int64 (maps,): number of cells in a row of cells
    first: Tensor  #: int64 (maps,): number of the first cell of each map
    count: int  #: number of all cells

    @classmethod
    def of(cls, shape: Sequence[int], block: int = BLOCK_SIDE, device: torch.device | str = "cpu") -> Pooling:
        """Return the grid of cells with a side of ``block`` values, 1 or more (paper: B)."""
        height, width = map_size(shape)
        rows, row_counts = _parts(height, block, device)
        columns, column_counts = _parts(width, block, device)
        maps = torch.arange(prod(shape) // (height * width), device=device)
        across = column_counts[maps // len(rows) % len(columns)]
        ends = (row_counts[maps % len(rows)] * across).cumsum(0)
        first = torch.cat((ends.new_zeros(1), ends[:-1]))
        return cls(height, width, rows, columns, across, first, int(ends[-1]))

    def cells(self, maps: slice = slice(None)) -> Tensor:
        """Return the number of the cell of each value of some maps, int64 (values,): map by map, row by row."""
        numbers = torch.arange(len(self.first), device=self.first.device)[maps]
        down = self.rows[numbers % len(self.rows)] * self.across[maps, None]
        across = self.columns[numbers // len(self.rows) % len(self.columns)]
        return (self.first[maps, None, None] + down[:, :, None] + across[:, None, :]).flatten()

    def part(self, part: slice) -> Tensor:
        """Return the cell numbers of a slice of values that is a piece of whole maps."""
        size = self.height * self.width
        return self.cells(slice(part.start // size, -(-part.stop // size)))


@dataclass(frozen=True, eq=False)
class Means:
    """Means of cells, with nearest upsampling."""

    pooling: Pooling
    means: Tensor  #: 16-bit floats (cells,)

    def at(self, part: slice) -> Tensor:
        """Return the mean at each position of a piece of whole maps, float32 (n,)."""
        return self.means[self.pooling.part(part)].to(torch.float32)


def cell_means(values: Tensor, cells: Tensor) -> Tensor:
    """Return the mean of each cell, float32 (cells,), first to last; ``values`` are floats (values,), added in float64."""
    cells = cells - cells[0]
    count = int(cells[-1]) + 1
    sums = torch.zeros(count, dtype=torch.float64, device=values.device).index_add_(0, cells, values.to(torch.float64))
    return (sums / torch.bincount(cells, minlength=count)).to(torch.float32)


def _parts(extent: int, block: int, device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Return the part of each position of an axis in each turn, int64 (turns, extent), and the number of parts (turns,)."""
    turns = torch.arange(block // gcd(extent, block) if extent > block else 1, device=device)
    counts = ((turns + 1) * extent // block - turns * extent // block).clamp_min(1)
    return torch.arange(extent, device=device) * counts[:, None] // extent, counts
