"""Zig-zag order of the coefficients of a block (ITU-T T.81, figure A.6)."""

from __future__ import annotations

from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.jpeg import ZIGZAG
from torch import Tensor

#: Place of each coefficient in row-major order.
_PLACES = tuple(sorted(range(BLOCK_VALUES), key=ZIGZAG.__getitem__))


def to_zigzag(blocks: Tensor) -> Tensor:
    """Return blocks (..., 8, 8) [vertical][horizontal frequency] as (..., 64) in zig-zag order."""
    return blocks.flatten(-2)[..., list(ZIGZAG)]


def from_zigzag(blocks: Tensor) -> Tensor:
    """Return blocks (..., 64) in zig-zag order as (..., 8, 8); inverse of :func:`to_zigzag`."""
    return blocks[..., list(_PLACES)].view(*blocks.shape[:-1], BLOCK_SIDE, BLOCK_SIDE)
