"""Codes of 1 to 8 bits as bytes: a row of 8 codes takes as many bytes as a code has bits, value 0 in the lowest bits.

Payloads of streams have 1, 2, 4 or 8 bits, where codes do not straddle bytes.
"""

from __future__ import annotations

import torch
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.golden.checks import require
from actcodec.golden.pieces import pieces


def pack_codes(codes: Tensor, bits: int) -> Tensor:
    """Pack uint8 (rows, 8), each below 2**bits, to uint8 (rows, bits)."""
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
    """Unpack uint8 (rows, bits) to uint8 (rows, 8); inverse of :func:`pack_codes`."""
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
    """Pack any number of codes as :func:`pack_codes` does: uint8 (n,), each below 2**bits, to uint8 (ceil(n * bits / 8),)."""
    packed = codes.new_empty(-(-codes.numel() * bits // LANES))
    for part in pieces(codes.numel(), codes.device):
        mine = packed[part.start * bits // LANES : -(-part.stop * bits // LANES)]
        rows = _filled(codes[part], -(-(part.stop - part.start) // LANES) * LANES).view(-1, LANES)
        mine.copy_(pack_codes(rows, bits).flatten()[: mine.numel()])
    return packed


def unpack_tight(packed: Tensor, bits: int, count: int) -> Tensor:
    """Return the ``count`` codes of :func:`pack_tight`, uint8 (count,)."""
    codes = packed.new_empty(count)
    for part in pieces(count, packed.device):
        codes[part] = unpack_part(packed, bits, part)
    return codes


def unpack_part(packed: Tensor, bits: int, part: slice) -> Tensor:
    """Return some of the codes of :func:`pack_tight`, uint8 (n,)."""
    beat, lane = divmod(part.start, LANES)
    mine = packed[beat * bits : -(-part.stop * bits // LANES)]
    rows = -(-part.stop // LANES) - beat
    return unpack_codes(_filled(mine, rows * bits).view(-1, bits), bits).flatten()[lane : part.stop - beat * LANES]


def _filled(values: Tensor, count: int) -> Tensor:
    """Pad values (n,) with zeros to ``count`` values."""
    if values.numel() == count:
        return values
    filled = values.new_zeros(count)
    filled[: values.numel()] = values
    return filled


def _to_words(digits: Tensor, width: int) -> Tensor:
    """Join uint8 (rows, n), each below 2**width, n * width < 64, to int64 (rows,), digit 0 in the lowest bits."""
    words = digits[:, 0].to(torch.int64)
    for place in range(1, digits.shape[1]):
        words |= digits[:, place].to(torch.int64) << (width * place)
    return words


def _to_bytes(words: Tensor, count: int, width: int) -> Tensor:
    """Split words into ``count`` digits, uint8 (rows, count); inverse of :func:`_to_words`."""
    digits = torch.empty(len(words), count, dtype=torch.uint8, device=words.device)
    for place in range(count):
        digits[:, place] = (words >> (width * place)) & ((1 << width) - 1)
    return digits
