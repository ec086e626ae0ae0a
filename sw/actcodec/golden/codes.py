"""Codes of 1, 2, 4 or 8 bits as bytes: a row of 8 codes is as many bytes as a code has bits, value 0 in the lowest ones."""

from __future__ import annotations

import torch
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.golden.checks import require


def pack_codes(codes: Tensor, bits: int) -> Tensor:
    """uint8 (rows, 8), each below 2**bits, to uint8 (rows, bits)."""
    require("codes", codes, (torch.uint8,), (LANES,))
    per_byte = LANES // bits
    groups = codes.reshape(-1, bits, per_byte)
    packed = groups[..., 0].clone()
    for place in range(1, per_byte):
        packed |= groups[..., place] << (bits * place)
    return packed


def unpack_codes(packed: Tensor, bits: int) -> Tensor:
    """uint8 (rows, bits) to uint8 (rows, 8); the inverse of :func:`pack_codes`."""
    require("packed", packed, (torch.uint8,), (bits,))
    if bits == LANES:
        return packed
    per_byte = LANES // bits
    codes = torch.empty(len(packed), bits, per_byte, dtype=torch.uint8, device=packed.device)
    for place in range(per_byte):
        codes[..., place] = (packed >> (bits * place)) & ((1 << bits) - 1)
    return codes.view(-1, LANES)
