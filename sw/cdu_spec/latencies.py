"""Latencies of a unit's blocks in cycles: the generator builds them, :mod:`cdu_driver.cycles` adds them up."""

from __future__ import annotations

from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES
from cdu_spec.modes import Dtype, Mode
from cdu_spec.mx import MX_VALUES
from cdu_spec.register_types import COUNT_BITS, Channel

#: Ends of a stream port: the one that sends, and the one that receives, which gives a word on when its successor comes.
SENDER, RECEIVER = 1, 1
#: From a word of the packed port to a slice, and from a slice to a word.
SPLITTER, COLLECTOR = 2, 2
#: From the last row of a block to its first slice, and from its last slice to its first row.
BLOCK_ENCODER, GMC_ENCODER, BLOCK_DECODER = 3, 9, 3
SHIFT_QUANTIZER, AFFINE_QUANTIZER, AFFINE_DEQUANTIZER = 1, 4, 2
MX_ENCODER, MX_DECODER = 2, 1
CRC_WRITER, CRC_CHECKER = 2, 1
#: From the last row of a tile to the first one behind the alignment buffer.
ALIGNMENT = 2
#: From statistics of blocks to their ranges.
RANGE = 2
#: Register slice, and the block that makes rows of words or words of rows where a port has several rows.
SLICE, ROWS = 1, 1
#: Queue of scales, windows that they fill, and words that take a window along.
SCALE_QUEUE, SCALE_WINDOWS, SCALE_FEEDER = 1, 3, 1
#: Check of a START: two register stages, and one to hand the result over; with tiles a bit of a quotient per cycle, and one.
JOB_CHECK, JOB_CHECK_IN_TILES = 3, COUNT_BITS - (BLOCK_SIDE - 1).bit_length() + 1
#: Access of a DMA engine to a register.
REGISTER_ACCESS = 8
#: From the first request of a DMA engine for a job to the first write of the job's registers.
FIRST_WRITE = {Channel.COMPRESS: 1, Channel.DECOMPRESS: 2}


def sfpr(config: CduConfig) -> int:
    """Return the latency of SFPR."""
    return (4 if config.has_offsets else 3) + config.multiplier_stages


def inverse_sfpr(config: CduConfig) -> int:
    """Return the latency of inverse SFPR."""
    return (3 if config.dtype is Dtype.FP32 else 4) + config.multiplier_stages


def dct(config: CduConfig) -> int:
    """Return the latency of the DCT; in half duplex it is the transform of both directions."""
    return (11 if config.duplex == "full" else 13) + 2 * config.dct_stages


def idct(config: CduConfig) -> int:
    """Return the latency of the inverse DCT; in half duplex it is the transform of both directions."""
    return (14 if config.duplex == "full" else 13) + 2 * config.dct_stages


def statistics(config: CduConfig) -> int:
    """Return the latency of the words that pass the statistics of blocks."""
    return 1 if config.port_beats == 1 else 2


def compression(config: CduConfig, mode: Mode) -> int:
    """Return the cycles from the last row of a block at the core to the word with its first slice.

    The block's way through alignment buffer and lane at their rates comes on top.
    """
    crc = CRC_WRITER * config.payload_crc
    slices = SLICE * config.register_slices
    if mode is Mode.BYPASS:
        return crc
    if mode is Mode.MX:
        # A block of rows waits for its last one.
        return MX_ENCODER + max(0, MX_VALUES // LANES // config.mx_rows - 1) + slices + COLLECTOR + crc
    aligned = (statistics(config) + RANGE) * config.has_ranges + (ALIGNMENT - 1) * config.has_tiles
    coded = dct(config) + SHIFT_QUANTIZER if mode.has_dct else AFFINE_QUANTIZER * config.has_affine
    return sfpr(config) + aligned + ROWS * (config.port_beats > 1) + coded + BLOCK_ENCODER + 2 * slices + COLLECTOR + crc


def decompression(config: CduConfig, mode: Mode) -> int:
    """Return the cycles from the word that completes a block at the core to the block's first row.

    The block's way through its lane, and the tile's to the alignment buffer, come on top.
    """
    crc = CRC_CHECKER * config.payload_crc
    if mode is Mode.BYPASS:
        return crc
    if mode is Mode.MX:
        return crc + SPLITTER + MX_DECODER
    coded = SHIFT_QUANTIZER + idct(config) if mode.has_dct else 0
    aligned = ROWS * (config.port_beats > 1) + ALIGNMENT * config.has_tiles
    return crc + SPLITTER + BLOCK_DECODER + 2 * SLICE * config.register_slices + coded + aligned + to_values(config, mode)


def to_values(config: CduConfig, mode: Mode) -> int:
    """Return the cycles from a row that has its scale to the row of values."""
    if mode in (Mode.BYPASS, Mode.MX):
        return 0
    return AFFINE_DEQUANTIZER * config.has_affine + inverse_sfpr(config)


def scales(config: CduConfig) -> int:
    """Return the cycles from a scale at the core to a row that has it."""
    return SCALE_QUEUE + SCALE_WINDOWS + SCALE_FEEDER + SLICE * config.register_slices


def job_check(mode: Mode) -> int:
    """Return the cycles in which the START of a mode is checked."""
    return JOB_CHECK_IN_TILES if mode.in_tiles else JOB_CHECK
