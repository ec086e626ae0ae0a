"""Codes of 2 to 8 bits in bytes: planes of 4, 2 and 1 bits, each of which keeps codes from far parts of a row in one byte.

Bytes are then loaded and stored side by side, as vectors: code m of part j lies in byte m of a plane, shifted by ``width * j``.
"""

from __future__ import annotations

import torch
from torch import Tensor

#: Bits of the planes of a code, its lowest bits first.
_PLANES = {8: (8,), 6: (4, 2), 5: (4, 1), 4: (4,), 2: (2,)}
_BYTE = 8


def codes_per_byte(bits: int) -> int:
    """Return the number of parts of a row: codes of the narrowest plane in a byte."""
    return _BYTE // _PLANES[bits][-1]


def plane_bytes(codes: int, bits: int) -> int:
    """Return bytes of all planes of so many codes, a multiple of :func:`codes_per_byte`."""
    return codes * bits // _BYTE


def pack_planes(codes: Tensor, bits: int, axis: int) -> tuple[Tensor, ...]:
    """Return codes as planes.

    Parameters
    ----------
    codes
        uint8, any shape; of each byte the lowest ``bits`` count.
    bits
        2, 4, 5, 6 or 8.
    axis
        Negative number of the axis of the parts, of size :func:`codes_per_byte`.

    Returns
    -------
    planes
        uint8, one for each power of two in ``bits``, of the shape of ``codes`` but for fewer parts on ``axis``.
    """
    planes, first = list[Tensor](), 0
    for width in _PLANES[bits]:
        together = _BYTE // width
        plane = (torch.bitwise_right_shift(codes, first) if first else codes) & ((1 << width) - 1)
        count = plane.shape[axis] // together
        parts = plane.view(*plane.shape[:axis], count, together, *plane.shape[axis + 1 or plane.dim() :]).unbind(axis)
        byte = parts[0]
        for place, part in enumerate(parts[1:], 1):
            byte = byte | torch.bitwise_left_shift(part, place * width)
        planes.append(byte)
        first += width
    return tuple(planes)


def unpack_planes(planes: tuple[Tensor, ...], bits: int, axis: int) -> Tensor:
    """Return the inverse of :func:`pack_planes`, uint8."""
    codes, first = None, 0
    for width, plane in zip(_PLANES[bits], planes, strict=True):
        together = _BYTE // width
        shifts = torch.arange(0, _BYTE, width, dtype=torch.uint8, device=plane.device).view(-1, *[1] * (-axis - 1))
        bytes_ = plane.unsqueeze(axis)
        parts = (torch.bitwise_right_shift(bytes_, shifts) & ((1 << width) - 1) if together > 1 else bytes_).flatten(
            axis - 1, axis
        )
        codes = parts if codes is None else codes | torch.bitwise_left_shift(parts, first)
        first += width
    assert codes is not None
    return codes
