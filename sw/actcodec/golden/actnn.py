"""Mode actnn on integers: groups of 256 consecutive values, each with its own range (ActNN, per-group quantisation).

A group fills the alignment buffer: 8 rows of 32 values, cut into four 8x8 blocks side by side. The range of a group precedes
its first block.
"""

from __future__ import annotations

import torch
from cdu_spec.affine import GROUP_VALUES, AffineSettings
from cdu_spec.bitstream import BitstreamError
from cdu_spec.coding import head_bytes
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS
from cdu_spec.modes import Mode
from torch import Tensor

from actcodec.golden.affine import Ranges, dequantize, quantize
from actcodec.golden.block_statistics import least_and_greatest
from actcodec.golden.checks import require
from actcodec.golden.codes import pack_codes, unpack_codes
from actcodec.golden.heads import headed_bytes, pack_ranges, unpack_ranges

_ROWS = TILE_BLOCKS * BLOCK_SIDE


def encode(groups: Tensor, settings: AffineSettings, first: int = 0) -> Tensor:
    """Encode int16 (G, 256), consecutive values, to the payload, uint8 (G * (4 + 32 * bits),).

    ``first`` is the number of the first group's beat in its job (:func:`actcodec.golden.affine.quantize`).
    """
    require("groups", groups, (torch.int16,), (GROUP_VALUES,))
    ranges = Ranges.found(*least_and_greatest(groups), settings.bits)
    by_block = groups.reshape(-1, BLOCK_SIDE, TILE_BLOCKS, LANES).transpose(1, 2).reshape(-1, LANES)
    codes = quantize(by_block, ranges.per_row(_ROWS), settings, first)
    bodies = pack_codes(codes, settings.bits).view(len(groups), -1)
    return torch.cat((pack_ranges(ranges), bodies), 1).view(-1)


def decode(payload: Tensor, count: int, settings: AffineSettings) -> Tensor:
    """Decode the ``count`` groups of a payload to int32 (count, 256) in -65536..65535.

    Raises BitstreamError for a payload of another length and for impossible steps.
    """
    require("payload", payload, (torch.uint8,))
    head, size = head_bytes(Mode.ACTNN, settings), headed_bytes(Mode.ACTNN, settings)
    if payload.numel() != count * size:
        raise BitstreamError(f"corrupted stream: {payload.numel()} payload bytes are not {count} groups of {size}")
    table = payload.view(count, size)
    ranges = unpack_ranges(table, settings.bits)
    codes = unpack_codes(table[:, head:].reshape(-1, settings.bits), settings.bits)
    values = dequantize(codes, ranges.per_row(_ROWS))
    return values.view(-1, TILE_BLOCKS, BLOCK_SIDE, LANES).transpose(1, 2).reshape(count, GROUP_VALUES)
