"""Codes of any number of bits as bytes, without gaps: whole bytes of all codes first, then the bits above them.

Codes of ``8 * q + r`` bits are q planes of one byte per code, the lowest first, and a plane of r bits per code, packed as by
:func:`~actcodec.golden.codes.pack_tight`. Four codes of 10 bits are 5 bytes.
"""

from __future__ import annotations

import torch
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.golden.codes import pack_tight, unpack_tight

_BYTE = 0xFF


def wide_bytes(count: int, bits: int) -> int:
    """Return the bytes of ``count`` codes."""
    whole, rest = divmod(bits, LANES)
    return whole * count + -(-rest * count // LANES)


def pack_wide(codes: Tensor, bits: int) -> Tensor:
    """Pack integers (n,), each from 0 to below 2**bits, to uint8 (wide_bytes(n, bits),), which is empty for 0 bits."""
    packed = torch.empty(wide_bytes(codes.numel(), bits), dtype=torch.uint8, device=codes.device)
    put_wide(packed, codes, bits, codes.numel(), 0)
    return packed


def unpack_wide(packed: Tensor, bits: int, count: int, dtype: torch.dtype = torch.int32) -> Tensor:
    """Return the ``count`` codes of :func:`pack_wide` in an integer format that holds them, (count,)."""
    return take_wide(packed, bits, count, slice(0, count), dtype)


def put_wide(packed: Tensor, codes: Tensor, bits: int, count: int, first: int) -> None:
    """Write some of the ``count`` codes of a packed form, from code ``first`` on, a multiple of 8.

    The number of ``codes`` is a multiple of 8, unless they are the last ones; formats are those of :func:`pack_wide`.
    """
    whole, rest = divmod(bits, LANES)
    for place in range(whole):
        packed[place * count + first :][: codes.numel()] = codes >> LANES * place & _BYTE
    if rest:
        upper = pack_tight((codes >> LANES * whole).to(torch.uint8), rest)
        packed[whole * count + first * rest // LANES :][: upper.numel()] = upper


def take_wide(packed: Tensor, bits: int, count: int, part: slice, dtype: torch.dtype = torch.int32) -> Tensor:
    """Return some of the ``count`` codes of :func:`pack_wide`; ``part`` begins at a multiple of 8."""
    whole, rest = divmod(bits, LANES)
    codes = torch.zeros(part.stop - part.start, dtype=dtype, device=packed.device)
    for place in range(whole):
        codes |= packed[place * count + part.start : place * count + part.stop].to(dtype) << LANES * place
    if rest:
        upper = packed[whole * count :][part.start * rest // LANES : -(-part.stop * rest // LANES)]
        codes |= unpack_tight(upper, rest, codes.numel()).to(dtype) << LANES * whole
    return codes
