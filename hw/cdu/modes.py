"""Decisions by the mode of a block."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Const, Value
from cdu_spec.bitstream import LOW_BYTES, MAX_BLOCK_BYTES, STEP_BYTES, Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES

#: Modes whose blocks, or some of them, begin with a range.
RANGED_MODES = (Mode.DIVISION, Mode.ACTNN)
#: Bytes of a range with its step.
RANGE_BYTES = LOW_BYTES + STEP_BYTES

_LENGTHS = {
    Mode.SFPR: BLOCK_VALUES,
    Mode.SFPR_ZVC: MAX_BLOCK_BYTES,
    Mode.JPEG_ACT: MAX_BLOCK_BYTES,
    Mode.BRC: BLOCK_SIDE,
    Mode.DIVISION: RANGE_BYTES + BLOCK_VALUES,
    Mode.ACTNN: RANGE_BYTES + BLOCK_VALUES,
    Mode.BLPA: BLOCK_VALUES,
    Mode.AUTOQUANT: BLOCK_VALUES,
    Mode.AUTOQUANTZ: MAX_BLOCK_BYTES,
}


def is_one_of(mode: Value, modes: Iterable[Mode]) -> Value:
    """Whether ``mode`` is among ``modes``."""
    return reduce(or_, (mode == other for other in modes), Const(0))


def longest_block(modes: Iterable[Mode]) -> int:
    """Bytes of the longest packed block, rounded up to a multiple of 8."""
    longest = max((_LENGTHS[mode] for mode in modes if mode in _LENGTHS), default=BLOCK_SIDE)
    return -(-longest // 8) * 8


def gives_statistics(config: CduConfig, tag: Any) -> Value:
    """Whether a block of this :class:`~cdu.words.BlockTag` leaves as its statistics."""
    if Mode.DIVISION not in config.built_modes:
        return Const(0, 1)
    statistics: Value = (tag["mode"] == Mode.DIVISION) & tag["quantizer"]["statistics"]
    return statistics


def has_ranges(modes: Iterable[Mode]) -> bool:
    """Whether a mode is built in whose blocks have ranges."""
    return any(mode in RANGED_MODES for mode in modes)
