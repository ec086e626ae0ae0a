"""Checks of numbers that a user gives, for which True and False are no numbers."""

from __future__ import annotations

from math import inf
from typing import TypeGuard


def is_whole(value: object, least: float = -inf, greatest: float = inf) -> TypeGuard[int]:
    """Return whether ``value`` is an int from ``least`` to ``greatest``, both included."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= greatest


def is_real(value: object, least: float = -inf, greatest: float = inf) -> TypeGuard[int | float]:
    """Return whether ``value`` is an int or a float from ``least`` to ``greatest``, both included; NaN is not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= greatest
