"""Codes of 1 to 8 bits as bytes: a row of 8 codes is as many bytes as a code has bits, value 0 in the lowest ones.

Payloads of streams have 1, 2, 4 or 8 bits, where codes do not straddle bytes.
"""

from __future__ import annotations

import torch
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.golden.checks import require


def pack_codes(codes: Tensor, bits: int) -> Tensor:
    """uint8 (rows, 8), each below 2**bits, to uint8 (rows, bits)."""
    require("codes", codes, (torch.uint8,), (LANES,))
    if LANES % bits:
        return _to_bytes(_to_words(codes.reshape(-1, LANES), bits), bits, LANES)
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
    if LANES % bits:
        return _to_bytes(_to_words(packed, LANES), LANES, bits)
    per_byte = LANES // bits
    codes = torch.empty(len(packed), bits, per_byte, dtype=torch.uint8, device=packed.device)
    for place in range(per_byte):
        codes[..., place] = (packed >> (bits * place)) & ((1 << bits) - 1)
    return codes.view(-1, LANES)


def pack_tight(codes: Tensor, bits: int) -> Tensor:
    """uint8 (n,), each below 2**bits, to uint8 (ceil(n * bits / 8),): :func:`pack_codes` of any number of codes."""
    padded = codes.new_zeros(-(-codes.numel() // LANES) * LANES)
    padded[: codes.numel()] = codes
    return pack_codes(padded.view(-1, LANES), bits).flatten()[: -(-codes.numel() * bits // LANES)].clone()


def unpack_tight(packed: Tensor, bits: int, count: int) -> Tensor:
    """The ``count`` codes of :func:`pack_tight`, uint8 (count,)."""
    padded = packed.new_zeros(-(-count // LANES) * bits)
    padded[: packed.numel()] = packed
    return unpack_codes(padded.view(-1, bits), bits).flatten()[:count]


def _to_words(digits: Tensor, width: int) -> Tensor:
    """uint8 (rows, n), each below 2**width, n * width < 64, to int64 (rows,): digit 0 in the lowest bits."""
    words = digits[:, 0].to(torch.int64)
    for place in range(1, digits.shape[1]):
        words |= digits[:, place].to(torch.int64) << (width * place)
    return words


def _to_bytes(words: Tensor, count: int, width: int) -> Tensor:
    """The inverse of :func:`_to_words` for ``count`` digits, uint8 (rows, count)."""
    digits = torch.empty(len(words), count, dtype=torch.uint8, device=words.device)
    for place in range(count):
        digits[:, place] = (words >> (width * place)) & ((1 << width) - 1)
    return digits
