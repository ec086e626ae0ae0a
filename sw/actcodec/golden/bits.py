"""Conversion of bits to bytes and back, least significant bit first, eight at a time in 64-bit words."""

from __future__ import annotations

import sys

import torch
from torch import Tensor

# The byte tricks below read eight bytes as one little-endian word.
assert sys.byteorder == "little", "the golden model needs a little-endian machine"

#: Multiplying bytes b0..b7 of zeros and ones by this leaves b_i at bit 56 + i.
_GATHER = sum(1 << (56 - 7 * i) for i in range(8))
_SPREAD = tuple(sum((byte >> i & 1) << (8 * i) for i in range(8)) for byte in range(256))
_EVEN_BITS, _EVEN_PAIRS, _LOW_NIBBLES = 0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F


def pack_bits(flags: Tensor) -> Tensor:
    """Pack contiguous bool (..., 8 * n) to uint8 (..., n): flag 8 * j + i becomes bit i of byte j."""
    words = flags.view(torch.int64) * _GATHER
    return words.bitwise_right_shift_(56).to(torch.uint8)


def unpack_bits(packed: Tensor) -> Tensor:
    """Unpack uint8 (..., n) to bool (..., 8 * n): bit i of byte j becomes flag 8 * j + i."""
    spread = torch.tensor(_SPREAD, dtype=torch.int64, device=packed.device)
    words = spread.index_select(0, packed.reshape(-1).to(torch.int32))
    return words.view(torch.bool).view(*packed.shape[:-1], 8 * packed.shape[-1])


def popcount_(values: Tensor) -> Tensor:
    """Replace each byte by the number of its set bits, 0..8: contiguous uint8 (8 * n,), aligned to 8 bytes, in place."""
    words = values.view(torch.int64)
    words.sub_((words >> 1).bitwise_and_(_EVEN_BITS))
    words.copy_((words & _EVEN_PAIRS).add_((words >> 2).bitwise_and_(_EVEN_PAIRS)))
    words.add_(words >> 4).bitwise_and_(_LOW_NIBBLES)
    return values
