"""Bits to bytes and back, least significant bit first, eight at a time in 64-bit words."""

from __future__ import annotations

import sys

import torch
from torch import Tensor

# The byte tricks below read eight bytes as one little-endian word.
assert sys.byteorder == "little", "the golden model needs a little-endian machine"

#: Multiplying bytes b0..b7 of zeros and ones by this leaves b_i at bit 56 + i.
_GATHER = sum(1 << (56 - 7 * i) for i in range(8))
_SPREAD = tuple(sum((byte >> i & 1) << (8 * i) for i in range(8)) for byte in range(256))


def pack_bits(flags: Tensor) -> Tensor:
    """Contiguous bool (..., 8 * n) to uint8 (..., n): flag 8 * j + i becomes bit i of byte j."""
    words = flags.view(torch.int64)
    return (words * _GATHER >> 56).to(torch.uint8)


def unpack_bits(packed: Tensor) -> Tensor:
    """uint8 (..., n) to bool (..., 8 * n): bit i of byte j becomes flag 8 * j + i."""
    spread = torch.tensor(_SPREAD, dtype=torch.int64, device=packed.device)
    words = spread.index_select(0, packed.reshape(-1).to(torch.int32))
    return words.view(torch.bool).view(*packed.shape[:-1], 8 * packed.shape[-1])


def popcount(values: Tensor) -> Tensor:
    """Set bits of each byte: uint8 to uint8 0..8."""
    pairs = values - (values >> 1 & 0x55)
    nibbles = (pairs & 0x33) + (pairs >> 2 & 0x33)
    return nibbles + (nibbles >> 4) & 0x0F
