"""The parts of a compressed tensor as bytes, and back (docs/bitstream.md)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import torch
from cdu_spec.bitstream import (
    CRC_BYTES,
    RECIPROCAL_BYTES,
    BitstreamError,
    Header,
    pack_shifts,
    unpack_shifts,
)
from cdu_spec.sfpr import SCALE_EXPONENT_LIMIT
from torch import Tensor

from actcodec.golden.checks import require


def serialise(header: Header, shifts: Sequence[int], reciprocals: Tensor, payload: Tensor) -> bytes:
    """One stream: header, shape, shift table, reciprocals, payload, CRC-32 of everything before it.

    Parameters
    ----------
    header
        Says how long every section is.
    shifts
        64 shifts in payload order, or none in modes without a table.
    reciprocals
        float32 (header.reciprocal_count,).
    payload
        uint8 (header.payload_bytes,).
    """
    require("reciprocals", reciprocals, (torch.float32,), (header.reciprocal_count,))
    require("payload", payload, (torch.uint8,), (header.payload_bytes,))
    table = pack_shifts(shifts) if header.shift_table_bytes else b""
    numbers = reciprocals.cpu().numpy().astype("<f4").tobytes()
    body = b"".join((header.pack(), table, numbers, payload.cpu().numpy().tobytes()))
    return body + zlib.crc32(body).to_bytes(CRC_BYTES, "little")


def parse(stream: bytes) -> tuple[Header, tuple[int, ...], Tensor, Tensor]:
    """Header, shifts (payload order; empty without a table), reciprocals and payload of a stream, on the CPU.

    Raises BitstreamError unless lengths, checksum and the range of every reciprocal are right. Whether the payload's
    blocks fit together is seen when it is decoded.
    """
    header = Header.unpack(stream)
    body, crc = stream[:-CRC_BYTES], int.from_bytes(stream[-CRC_BYTES:], "little")
    if zlib.crc32(body) != crc:
        raise BitstreamError("corrupted stream: the checksum does not match")
    end = header.payload_offset
    begin = end - header.reciprocal_count * RECIPROCAL_BYTES
    table = stream[begin - header.shift_table_bytes : begin]
    shifts = unpack_shifts(table) if table else ()
    # frombuffer on a bytearray: tensors must not alias immutable bytes.
    writable = bytearray(stream[begin : end + header.payload_bytes])
    split = end - begin
    reciprocals = torch.frombuffer(writable, dtype=torch.float32, count=header.reciprocal_count) if split else torch.zeros(0)
    payload = torch.frombuffer(writable, dtype=torch.uint8, offset=split)
    check_reciprocals(reciprocals)
    return header, shifts, reciprocals, payload


def check_reciprocals(reciprocals: Tensor) -> None:
    """Raise BitstreamError for a reciprocal outside [2**-120, 2**120] (NaN included)."""
    limit = 2.0**SCALE_EXPONENT_LIMIT
    if not bool(((reciprocals >= 1 / limit) & (reciprocals <= limit)).all()):
        raise BitstreamError("corrupted stream: a reciprocal is out of range")
