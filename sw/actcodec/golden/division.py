"""Mode division on integers: 8x8 blocks with their mean (the low-frequency part) or least value, and codes of the rest.

Blocks are (B, 64) in row-major order, as :func:`actcodec.golden.blocks.tiles` gives them; a row of a block is a beat.
"""

from __future__ import annotations

import torch
from cdu_spec.affine import AffineSettings
from cdu_spec.bitstream import BitstreamError
from cdu_spec.coding import head_bytes
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES
from cdu_spec.modes import STATISTICS_BYTES, Mode
from torch import Tensor

from actcodec.golden.affine import Ranges, dequantize, quantize
from actcodec.golden.block_statistics import block_mean, least_and_greatest
from actcodec.golden.checks import require
from actcodec.golden.codes import pack_codes, unpack_codes
from actcodec.golden.heads import headed_bytes, pack_low, pack_ranges, unpack_low, unpack_ranges


def encode(blocks: Tensor, settings: AffineSettings, first: int = 0) -> Tensor:
    """Encode int16 (B, 64) to uint8 (B * (head + 8 * bits),), or, in a first pass, to statistics, uint8 (B * 6,).

    ``first`` is the number of the first block's beat in its job (:func:`actcodec.golden.affine.quantize`).
    """
    require("blocks", blocks, (torch.int16,), (BLOCK_VALUES,))
    if settings.statistics:
        of_blocks = torch.stack((block_mean(blocks), *least_and_greatest(blocks)), 1)
        return of_blocks.to(torch.int16).view(torch.uint8).view(-1)
    if settings.block_range:
        ranges = Ranges.found(*least_and_greatest(blocks), settings.bits)
        heads = pack_ranges(ranges)
    else:
        mean = block_mean(blocks)
        ranges = _around(mean, settings)
        heads = pack_low(mean)
    codes = quantize(blocks.reshape(-1, LANES), ranges.per_row(BLOCK_SIDE), settings, first)
    bodies = pack_codes(codes, settings.bits).view(len(blocks), -1)
    return torch.cat((heads, bodies), 1).view(-1)


def statistics(payload: Tensor, count: int) -> Tensor:
    """Return mean, least and greatest value of each of ``count`` blocks, int32 (count, 3), from a first pass's payload.

    Raises BitstreamError for a payload of another length.
    """
    require("payload", payload, (torch.uint8,))
    if payload.numel() != count * STATISTICS_BYTES:
        raise BitstreamError(
            f"{payload.numel()} payload bytes are not the statistics of {count} blocks, {STATISTICS_BYTES} each"
        )
    return payload.view(torch.int16).view(count, -1).to(torch.int32)


def decode(payload: Tensor, count: int, settings: AffineSettings) -> Tensor:
    """Decode the ``count`` blocks of a payload to int32 (count, 64) in -65536..65535.

    Raises BitstreamError for a payload of another length and for impossible steps.
    """
    require("payload", payload, (torch.uint8,))
    head, size = head_bytes(Mode.DIVISION, settings), headed_bytes(Mode.DIVISION, settings)
    if payload.numel() != count * size:
        raise BitstreamError(f"corrupted stream: {payload.numel()} payload bytes are not {count} blocks of {size}")
    table = payload.view(count, size)
    bits = settings.bits
    ranges = unpack_ranges(table, bits) if settings.block_range else _around(unpack_low(table), settings)
    codes = unpack_codes(table[:, head:].reshape(-1, bits), bits)
    return dequantize(codes, ranges.per_row(BLOCK_SIDE)).view(count, BLOCK_VALUES)


def _around(mean: Tensor, settings: AffineSettings) -> Ranges:
    """Return ranges of a fixed step with the means in their middle."""
    return Ranges.fixed(mean - (settings.levels << settings.step_log2 >> 1), settings.step_log2)
