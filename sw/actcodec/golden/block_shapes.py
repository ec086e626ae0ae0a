"""Shapes of the tensors for which policies use the codecs of 8x8 blocks (JPEG-ACT: "shapes that do not fit")."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from cdu_spec.geometry import BLOCK_SIDE

#: Rule in words.
BLOCK_SHAPES = f"(N, C, H, W) with W >= {BLOCK_SIDE} and N*C*H >= {BLOCK_SIDE}"


def has_blocks(shape: Sequence[int]) -> bool:
    """Return whether ``shape`` is (N, C, H, W) with W >= 8 and N * C * H >= 8, no extent 0."""
    return len(shape) == 4 and prod(shape) > 0 and shape[3] >= BLOCK_SIDE and prod(shape[:3]) >= BLOCK_SIDE
