"""Serialisation of the parts of a compressed tensor, and its inverse (docs/reference/bitstream.md)."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from cdu_spec.affine import RECIPROCAL_EXPONENT_LIMIT
from cdu_spec.bitstream import CRC_BYTES, OFFSET_BYTES, RECIPROCAL_BYTES, BitstreamError, Header, pack_shifts, unpack_shifts
from cdu_spec.modes import Mode
from cdu_spec.sfpr import SCALE_EXPONENT_LIMIT
from cdu_tools.mapped import in_pieces, is_mapped
from torch import Tensor

from actcodec.golden.checks import require

if TYPE_CHECKING:
    from typing_extensions import Buffer


def serialise(
    header: Header, shifts: Sequence[int], reciprocals: Tensor, payload: Tensor, offsets: Tensor
) -> Iterator[memoryview]:
    """Yield a stream in pieces: header, shape, shift table, reciprocals, offsets, payload, CRC-32 of everything before it.

    Parameters
    ----------
    header
        Header, which determines the length of every section.
    shifts
        64 shifts in payload order; empty in modes without a table.
    reciprocals
        float32 (header.reciprocal_count,).
    payload
        uint8 (header.payload_bytes,).
    offsets
        int16 (header.offset_count,).
    """
    require("reciprocals", reciprocals, (torch.float32,), (header.reciprocal_count,))
    require("payload", payload, (torch.uint8,), (header.payload_bytes,))
    require("offsets", offsets, (torch.int16,), (header.offset_count,))
    table = pack_shifts(shifts) if header.shift_table_bytes else b""
    numbers = reciprocals.cpu().numpy().astype("<f4").tobytes() + offsets.cpu().numpy().astype("<i2").tobytes()
    return with_checksum(header.pack(), table, numbers, payload.cpu().contiguous().numpy().data)


def with_checksum(*sections: Buffer) -> Iterator[memoryview]:
    """Yield sections in pieces, then their CRC-32."""
    crc = 0
    for section in sections:
        for piece in in_pieces(section):
            crc = zlib.crc32(piece, crc)
            yield piece
    yield memoryview(crc.to_bytes(CRC_BYTES, "little"))


def checksum(section: Buffer) -> int:
    """Return the CRC-32 of bytes; of a mapped file, no more than a piece is in memory."""
    crc = 0
    for piece in in_pieces(section):
        crc = zlib.crc32(piece, crc)
    return crc


def parse(stream: bytes | memoryview) -> tuple[Header, tuple[int, ...], Tensor, Tensor, Tensor]:
    """Return header, shifts (payload order; empty without a table), reciprocals, payload and offsets, on the CPU.

    Raises BitstreamError unless lengths, checksum and the range of every reciprocal are right. Only decoding checks the
    payload's blocks. The payload of a mapped file stays in the file.
    """
    header = Header.unpack(stream)
    view = memoryview(stream)
    if checksum(view[:-CRC_BYTES]) != int.from_bytes(view[-CRC_BYTES:], "little"):
        raise BitstreamError("corrupted stream: the checksum does not match")
    offsets_at = header.payload_offset - header.offset_count * OFFSET_BYTES
    reciprocals_at = offsets_at - header.reciprocal_count * RECIPROCAL_BYTES
    table = view[reciprocals_at - header.shift_table_bytes : reciprocals_at]
    shifts = unpack_shifts(table) if table else ()
    reciprocals = numbers(view[reciprocals_at:offsets_at], torch.float32)
    offsets = numbers(view[offsets_at : header.payload_offset], torch.int16)
    payload = payload_of(view[header.payload_offset : -CRC_BYTES])
    check_reciprocals(reciprocals, header.mode)
    return header, shifts, reciprocals, payload, offsets


def payload_of(section: memoryview) -> Tensor:
    """Return a payload, uint8 (n,): that of a mapped file as it lies there, and a copy of any other."""
    if not is_mapped(section) or not section:
        return numbers(section, torch.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it cannot be written, and nothing writes it
        return torch.frombuffer(section, dtype=torch.uint8)


def numbers(section: bytes | memoryview, dtype: torch.dtype) -> Tensor:
    """Return the numbers of a section, copied because tensors must not alias immutable bytes."""
    return torch.frombuffer(bytearray(section), dtype=dtype) if section else torch.zeros(0, dtype=dtype)


def check_reciprocals(reciprocals: Tensor, mode: Mode) -> None:
    """Raise BitstreamError for a reciprocal outside [2**-120, 2**120] (affine modes: 2**111), NaN included."""
    least = 2.0**-SCALE_EXPONENT_LIMIT
    most = 2.0 ** (RECIPROCAL_EXPONENT_LIMIT if mode.is_affine else SCALE_EXPONENT_LIMIT)
    if not bool(((reciprocals >= least) & (reciprocals <= most)).all()):
        raise BitstreamError("corrupted stream: a reciprocal is out of range")
