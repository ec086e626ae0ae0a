"""Tensors as rows of values that share a step: one row for each channel, or one for the whole tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from actcodec.golden.pieces import piece_values, pieces

#: Rows and values of a part; in a tensor with all rows, the part is contiguous.
Piece = tuple[slice, slice]


@dataclass(frozen=True)
class Rows:
    """View of a tensor of some shape as (count, length)."""

    shape: tuple[int, ...]
    count: int  #: 1, or the extent of axis 1

    @property
    def length(self) -> int:
        """Return the number of values of a row."""
        return prod(self.shape) // self.count

    def pieces(self, device: torch.device) -> Iterator[Piece]:
        """Yield the pieces of the whole tensor, row by row."""
        if self.count == 1:
            return ((slice(0, 1), part) for part in pieces(self.length, device))
        step = max(piece_values(prod(self.shape), device) // self.length, 1)
        firsts = range(0, self.count, step)
        return ((slice(first, min(first + step, self.count)), slice(0, self.length)) for first in firsts)

    def first(self, piece: Piece) -> int:
        """Return the number of the first value of a piece."""
        rows, values = piece
        return int(rows.start) * self.length + int(values.start)

    def taken(self, x: Tensor, piece: Piece) -> Tensor:
        """Return a piece of a tensor, (rows, values)."""
        if self.count == 1:
            return x.reshape(1, -1)[:, piece[1]]
        return x[:, piece[0]].transpose(0, 1).flatten(1)

    def put(self, x: Tensor, piece: Piece, values: Tensor) -> None:
        """Write values, (rows, values), to a piece of a contiguous tensor."""
        if self.count == 1:
            x.view(1, -1)[:, piece[1]] = values
        else:
            x[:, piece[0]] = values.view(len(values), self.shape[0], *self.shape[2:]).transpose(0, 1)
