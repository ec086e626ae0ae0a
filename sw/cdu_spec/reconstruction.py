"""Reconstruction point of the inverse shift quantiser: the position within its step of a nonzero coefficient."""

from __future__ import annotations

from collections.abc import Sequence

from cdu_tools.errors import UserError
from cdu_tools.numbers import is_real

#: The point is a number of eighths of a step, 0 to one half.
POINT_BITS = 3
STEP_POINTS = 1 << POINT_BITS
MAX_POINT = STEP_POINTS // 2


def point_of(rec: float) -> int:
    """Return the number of eighths of a point given in steps: 0, 1/8, 1/4, 3/8 or 1/2. UserError for any other."""
    eighths = {point / STEP_POINTS: point for point in range(MAX_POINT + 1)}
    if not is_real(rec) or rec not in eighths:
        raise UserError(f"rec = {rec!r} is not allowed: use {', '.join(f'{one:g}' for one in eighths)}")
    return eighths[rec]


def offsets(shifts: Sequence[int], point: int) -> tuple[int, ...]:
    """Return the offsets added to nonzero magnitudes ``|q| << shift``: ``point`` eighths of ``2**shift``, rounded down.

    They are rounded down because a quantiser that truncates integers removes 0 to ``2**shift - 1``, on average less than half
    a step.
    """
    return tuple((point << shift) >> POINT_BITS for shift in shifts)
