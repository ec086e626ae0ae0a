"""Decisions by the mode of a block."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

from amaranth.hdl import Const, Value
from cdu_spec.bitstream import MAX_BLOCK_BYTES, Mode
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES


def is_one_of(mode: Value, modes: Iterable[Mode]) -> Value:
    """Whether ``mode`` is among ``modes``."""
    return reduce(or_, (mode == other for other in modes), Const(0))


def longest_block(modes: Iterable[Mode]) -> int:
    """Bytes of the longest packed block, a multiple of 8."""
    lengths = {Mode.BRC: BLOCK_SIDE, Mode.SFPR: BLOCK_VALUES, Mode.SFPR_ZVC: MAX_BLOCK_BYTES, Mode.JPEG_ACT: MAX_BLOCK_BYTES}
    return max((lengths[mode] for mode in modes if mode in lengths), default=BLOCK_SIDE)
