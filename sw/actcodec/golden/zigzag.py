"""Zig-zag order of the coefficients of a block (ITU-T T.81, figure A.6)."""

from __future__ import annotations

from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from torch import Tensor


def _diagonal_place(index: int) -> tuple[int, int]:
    """Diagonal of a row-major index, and how far along it: up on even diagonals, down on odd ones."""
    vertical, horizontal = divmod(index, BLOCK_SIDE)
    diagonal = vertical + horizontal
    return diagonal, vertical if diagonal % 2 else horizontal


#: Row-major index ``8 * v + u`` of the coefficient at each place.
ZIGZAG = tuple(sorted(range(BLOCK_VALUES), key=_diagonal_place))
#: Place of each coefficient in row-major order.
_PLACES = tuple(sorted(range(BLOCK_VALUES), key=ZIGZAG.__getitem__))


def to_zigzag(blocks: Tensor) -> Tensor:
    """Blocks (..., 8, 8) [vertical][horizontal frequency] as (..., 64) in zig-zag order."""
    return blocks.flatten(-2)[..., list(ZIGZAG)]


def from_zigzag(blocks: Tensor) -> Tensor:
    """The inverse of :func:`to_zigzag`."""
    return blocks[..., list(_PLACES)].view(*blocks.shape[:-1], BLOCK_SIDE, BLOCK_SIDE)
