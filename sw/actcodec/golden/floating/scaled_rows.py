"""Integers of eight bits with a scale per row: ``round(127 * (x / m))``, ties to even, with the row's greatest magnitude m.

Rows of zeros are divided by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from actcodec.golden.formats import quotient
from actcodec.golden.pieces import piece_values

#: Integer of a row's greatest magnitude.
FULL_SCALE = torch.iinfo(torch.int8).max


def codes(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the integers of rows of floats (n, values), int8, and the greatest magnitudes, float32 (n,).

    The third result is one number, which is not zero if there is NaN or infinity: the integers of its row mean nothing.
    """
    found = torch.empty_like(rows, dtype=torch.int8)
    greatest = rows.new_empty(len(rows), dtype=torch.float32)
    for into, some, most in _in_pieces(found, rows, greatest):
        most.copy_(some.abs().amax(1))
        into.copy_((some / torch.where(most > 0, most, 1.0)[:, None]).mul_(FULL_SCALE).round_())
    return found, greatest, ~greatest.amax().isfinite()


def values(codes: Tensor, greatest: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``code / 127 * m`` for the integers of rows (n, values)."""
    rebuilt = torch.empty_like(codes, dtype=dtype)
    for into, some, most in _in_pieces(rebuilt, codes, greatest[:, None]):
        into.copy_(quotient(some.to(torch.float32), FULL_SCALE) * most)
    return rebuilt


def _in_pieces(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield tensors (rows, ...) some rows at a time, as many as suit the first one."""
    rows, columns = tensors[0].shape
    step = max(1, piece_values(rows * columns, tensors[0].device) // columns)
    return (tuple(one[first : first + step] for one in tensors) for first in range(0, rows, step))
