"""The rate that a unit is built for."""

from __future__ import annotations

from math import ceil

from actcodec.backends.job import Job
from cdu_spec import gmc
from cdu_spec.affine import AffineSettings
from cdu_spec.coding import code_bits, coder_of, head_bytes
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, TILE_BLOCKS, VALUE_BITS
from cdu_spec.modes import MASK_BYTES, Coder, Mode


def rows_per_cycle(config: CduConfig, mode: Mode) -> float:
    """Rows of 8 values that pass per cycle when nothing waits and the packed side is wide enough.

    One per CDU, unless the port of the values is narrower. In bypass the narrower one of both ports decides, in mx a slice.
    """
    if mode is Mode.BYPASS:
        return min(config.port_beats, config.packed_bytes / (config.beat_bits // 8))
    if mode is Mode.MX:
        return config.mx_rows
    return min(config.cdus, config.port_beats)


def least_cycles(config: CduConfig, job: Job, payload: bytes) -> float:
    """Cycles that a long job takes at least, whatever its direction.

    Besides :func:`rows_per_cycle`, collector and splitter move ``slice_bytes`` per cycle, and no slice holds bytes of two
    blocks.
    """
    cycles = job.beats / rows_per_cycle(config, job.mode)
    if job.mode in (Mode.BYPASS, Mode.MX):
        return cycles
    return max(cycles, sum(ceil(size / config.slice_bytes) for size in block_bytes(job, payload)))


def block_bytes(job: Job, payload: bytes) -> list[int]:
    """Length of every block of a payload."""
    mode, bits = job.mode, code_bits(job.how)
    if not mode.has_zvc:
        row = 1 if mode is Mode.BRC else bits
        heads = head_bytes(mode, job.how) if isinstance(job.how, AffineSettings) else 0
        period = TILE_BLOCKS if mode is Mode.ACTNN else 1  # blocks, the first of which has the range of all
        return [
            row * min(BLOCK_SIDE, job.beats - begin) + (heads if begin // BLOCK_SIDE % period == 0 else 0)
            for begin in range(0, job.beats, BLOCK_SIDE)
        ]
    sizes, place = [], 0
    while coder_of(job.how) is Coder.GMC and place < len(payload):
        sizes.append(gmc.block_bytes(payload[place]))
        place += sizes[-1]
    while place < len(payload):
        mask = payload[place : place + MASK_BYTES]
        sizes.append(MASK_BYTES + sum(ceil(row.bit_count() * bits / VALUE_BITS) for row in mask))
        place += sizes[-1]
    return sizes
