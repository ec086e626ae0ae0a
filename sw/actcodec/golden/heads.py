"""Heads of blocks and groups before their codes: mean or least value (int16), then mantissa and exponent of a found step."""

from __future__ import annotations

import torch
from cdu_spec.affine import AffineSettings
from cdu_spec.coding import head_bytes
from cdu_spec.geometry import BLOCK_SIDE, TILE_BLOCKS
from cdu_spec.modes import LOW_BYTES, STEP_BYTES, Mode
from torch import Tensor

from actcodec.golden.affine import Ranges


def pack_low(low: Tensor) -> Tensor:
    """Pack means or least values, int32 (G,), to uint8 (G, 2)."""
    return low.to(torch.int16).view(torch.uint8).view(-1, LOW_BYTES)


def unpack_low(heads: Tensor) -> Tensor:
    """Return the means or least values at the begin of heads, uint8 (G, n), as int32 (G,)."""
    return heads[:, :LOW_BYTES].contiguous().view(torch.int16)[:, 0].to(torch.int32)


def pack_ranges(ranges: Ranges) -> Tensor:
    """Pack found ranges (G,) to uint8 (G, 4)."""
    step = torch.stack((ranges.mantissa, ranges.exponent), 1).to(torch.uint8)
    return torch.cat((pack_low(ranges.low), step), 1)


def unpack_ranges(heads: Tensor, bits: int) -> Ranges:
    """Unpack the ranges of heads, uint8 (G, 4 or more); raise BitstreamError for values that cannot be a range."""
    step = heads[:, LOW_BYTES : LOW_BYTES + STEP_BYTES].to(torch.int32)
    ranges = Ranges(unpack_low(heads), step[:, 0], step[:, 1])
    ranges.check(bits)
    return ranges


def headed_bytes(mode: Mode, settings: AffineSettings) -> int:
    """Return the bytes of a head and its codes: those of a block in mode division, of a group in mode actnn."""
    rows = BLOCK_SIDE * (TILE_BLOCKS if mode is Mode.ACTNN else 1)
    return head_bytes(mode, settings) + rows * settings.bits


def check_heads(payload: Tensor, mode: Mode, settings: AffineSettings) -> None:
    """Raise BitstreamError if a head of a payload, uint8 (n,) of a length that the mode allows, cannot be a range."""
    if mode is Mode.ACTNN or settings.block_range:
        unpack_ranges(payload.view(-1, headed_bytes(mode, settings)), settings.bits)
