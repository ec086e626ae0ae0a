"""The rate that a unit is built for."""

from __future__ import annotations

from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig


def rows_per_cycle(config: CduConfig, mode: Mode, payload_bytes_per_row: float = 0) -> float:
    """Rows of 8 values that pass per cycle when nothing waits.

    One per CDU, unless the port of the values is narrower, or the packed side, which moves ``slice_bytes`` per cycle, is the
    limit for content of ``payload_bytes_per_row``. In bypass the narrower one of both ports decides.
    """
    if mode is Mode.BYPASS:
        return min(config.port_beats, config.packed_bytes / (config.beat_bits // 8))
    rate = float(min(config.cdus, config.port_beats))
    return min(rate, config.slice_bytes / payload_bytes_per_row) if payload_bytes_per_row else rate
