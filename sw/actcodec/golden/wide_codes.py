"""Codes of any number of bits as bytes, without gaps: whole bytes of all codes first, then the bits above them.

Codes of ``8 * q + r`` bits are q planes of one byte per code, the lowest first, and a plane of r bits per code as
:func:`~actcodec.golden.codes.pack_tight` has it. Four codes of 10 bits are 5 bytes.
"""

from __future__ import annotations

import torch
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.golden.codes import pack_tight, unpack_tight

_BYTE = 0xFF


def wide_bytes(count: int, bits: int) -> int:
    """Bytes of ``count`` codes."""
    whole, rest = divmod(bits, LANES)
    return whole * count + -(-rest * count // LANES)


def pack_wide(codes: Tensor, bits: int) -> Tensor:
    """Integers (n,), each from 0 to below 2**bits, to uint8 (wide_bytes(n, bits),). With 0 bits nothing is left."""
    whole, rest = divmod(bits, LANES)
    planes = [(codes >> LANES * place & _BYTE).to(torch.uint8) for place in range(whole)]
    if rest:
        planes.append(pack_tight((codes >> LANES * whole).to(torch.uint8), rest))
    return torch.cat(planes) if planes else torch.zeros(0, dtype=torch.uint8, device=codes.device)


def unpack_wide(packed: Tensor, bits: int, count: int, dtype: torch.dtype = torch.int32) -> Tensor:
    """The ``count`` codes of :func:`pack_wide` in an integer format that holds them, (count,)."""
    whole, rest = divmod(bits, LANES)
    codes = torch.zeros(count, dtype=dtype, device=packed.device)
    for place in range(whole):
        codes |= packed[place * count : (place + 1) * count].to(dtype) << LANES * place
    if rest:
        codes |= unpack_tight(packed[whole * count :], rest, count).to(dtype) << LANES * whole
    return codes
