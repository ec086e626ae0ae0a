"""ZVC (zero value compression): per block of 64 bytes, a mask of 8 bytes and then the bytes that are not zero.

Bit i of mask byte j belongs to value ``8 * j + i``. Blocks follow one another without gaps.
"""

from __future__ import annotations

import torch
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.modes import MASK_BYTES
from torch import Tensor

from actcodec.golden.bits import pack_bits, unpack_bits
from actcodec.golden.block_starts import block_starts
from actcodec.golden.checks import require
from actcodec.golden.movement import select, spread

_FULL_BYTES = MASK_BYTES + BLOCK_VALUES


def encode(blocks: Tensor) -> Tensor:
    """Encode int8 (B, 64) to the payload, uint8 (8 * B + number of nonzero values,)."""
    require("blocks", blocks, (torch.int8,), (BLOCK_VALUES,))
    blocks = blocks.contiguous()
    full = torch.empty(blocks.shape[0], _FULL_BYTES, dtype=torch.uint8, device=blocks.device)
    present = torch.ones(full.shape, dtype=torch.bool, device=blocks.device)
    nonzero = blocks.to(torch.bool)
    full[:, :MASK_BYTES] = pack_bits(nonzero)
    full[:, MASK_BYTES:] = blocks.view(torch.uint8)
    present[:, MASK_BYTES:] = nonzero
    return select(full, present)


def decode(payload: Tensor, count: int) -> Tensor:
    """Decode the ``count`` blocks of a payload to int8 (count, 64).

    Raises BitstreamError when the chain of blocks does not end, after ``count`` blocks, exactly at the end of the payload.
    No byte outside the payload is ever read.
    """
    require("payload", payload, (torch.uint8,))
    return decode_at(payload, block_starts(payload, count))


def decode_at(payload: Tensor, starts: Tensor) -> Tensor:
    """Decode a payload of exactly the blocks that begin at ``starts``, int64 (n,), to int8 (n, 64)."""
    offsets = torch.arange(MASK_BYTES, device=payload.device)
    masks = payload[starts[:, None] + offsets]
    present = torch.ones(len(starts), _FULL_BYTES, dtype=torch.bool, device=payload.device)
    present[:, MASK_BYTES:] = unpack_bits(masks)
    return spread(payload, present)[:, MASK_BYTES:].view(torch.int8)
