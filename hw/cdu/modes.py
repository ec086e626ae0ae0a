"""Decisions by the mode of a block."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

from amaranth.hdl import Const, Value
from cdu_spec.bitstream import Mode


def is_one_of(mode: Value, modes: Iterable[Mode]) -> Value:
    """Whether ``mode`` is among ``modes``."""
    return reduce(or_, (mode == other for other in modes), Const(0))
