"""The rate that a unit is built for."""

from __future__ import annotations

from math import ceil

from cdu_spec.bitstream import MASK_BYTES, Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES


def rows_per_cycle(config: CduConfig, mode: Mode) -> float:
    """Rows of 8 values that pass per cycle when nothing waits and the packed side is wide enough.

    One per CDU, unless the port of the values is narrower. In bypass the narrower one of both ports decides.
    """
    if mode is Mode.BYPASS:
        return min(config.port_beats, config.packed_bytes / (config.beat_bits // 8))
    return min(config.cdus, config.port_beats)


def least_cycles(config: CduConfig, mode: Mode, beats: int, payload: bytes) -> float:
    """Cycles that a long job takes at least, whatever its direction.

    Besides :func:`rows_per_cycle`, collector and splitter move ``slice_bytes`` per cycle, and no slice holds bytes of two
    blocks.
    """
    cycles = beats / rows_per_cycle(config, mode)
    if mode is Mode.BYPASS:
        return cycles
    return max(cycles, sum(ceil(size / config.slice_bytes) for size in block_bytes(mode, beats, payload)))


def block_bytes(mode: Mode, beats: int, payload: bytes) -> list[int]:
    """Length of every block of a payload."""
    if not mode.has_zvc:
        row = 1 if mode is Mode.BRC else LANES
        return [row * min(BLOCK_SIDE, beats - begin) for begin in range(0, beats, BLOCK_SIDE)]
    sizes, place = [], 0
    while place < len(payload):
        sizes.append(MASK_BYTES + int.from_bytes(payload[place : place + MASK_BYTES], "little").bit_count())
        place += sizes[-1]
    return sizes
