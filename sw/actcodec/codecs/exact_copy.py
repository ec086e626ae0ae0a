"""An exact copy of a tensor as bytes, for the tensors in a container that no codec takes (bitstream.md, section 10)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import torch
from cdu_spec.bitstream import CRC_BYTES, BitstreamError
from cdu_spec.modes import Dtype
from cdu_tools.errors import UserError
from cdu_tools.texts import extents
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.job import DTYPES
from actcodec.codecs.tensor_kinds import kind_of
from actcodec.golden.bitstream import checksum, payload_of, with_checksum
from actcodec.golden.dtype_names import dtype_name

MAGIC = b"CDX\x1a"
VERSION = 1
#: Number formats by their number in the stream: those of a compressed tensor, then others.
NUMBER_FORMATS = (
    *(DTYPES[number] for number in Dtype),
    torch.float64,
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
)
#: The highest rank that an array of numpy has.
_MAX_RANK = 64
#: magic, version, number format, rank, reserved.
_HEADER = struct.Struct("<4s4B")
_EXTENT = struct.Struct("<Q")


@dataclass(frozen=True)
class ExactHeader:
    """Number format and shape of an exact copy; every instance is valid (BitstreamError otherwise)."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    version: ClassVar[int] = VERSION

    def __post_init__(self) -> None:
        # Libraries compute strides from the other extents where one is 0.
        strided_bytes = prod(filter(None, self.shape)) * self.dtype.itemsize
        if len(self.shape) > _MAX_RANK or strided_bytes >= 1 << 63:
            raise BitstreamError(
                f"shape {extents(self.shape)} does not fit an exact copy: ranks up to {_MAX_RANK} below 2**63 bytes do, "
                "where an extent of 0 counts as 1"
            )

    @property
    def tensor_bytes(self) -> int:
        """Return the bytes of the values."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def sections(self) -> dict[str, int]:
        """Return the bytes of each section, in order."""
        shape = len(self.shape) * _EXTENT.size
        return {"header": _HEADER.size, "shape": shape, "values": self.tensor_bytes, "checksum": CRC_BYTES}

    @property
    def stream_bytes(self) -> int:
        """Return the length of the whole stream."""
        return sum(self.sections.values())

    def pack(self) -> bytes:
        """Return the header and the shape as bytes."""
        fixed = _HEADER.pack(MAGIC, VERSION, NUMBER_FORMATS.index(self.dtype), len(self.shape), 0)
        return fixed + b"".join(map(_EXTENT.pack, self.shape))

    @classmethod
    def unpack_start(cls, stream: bytes | memoryview) -> ExactHeader:
        """Read the header from the start of a stream; raise BitstreamError if there is none."""
        if len(stream) < _HEADER.size:
            raise BitstreamError(f"truncated stream: {len(stream)} bytes are fewer than a header of {_HEADER.size}")
        magic, version, number, rank, reserved = _HEADER.unpack_from(stream)
        if magic != MAGIC:
            raise BitstreamError("not an exact copy: it does not begin with the magic bytes")
        if version != VERSION:
            raise BitstreamError(f"stream version {version} is not known: this software reads version {VERSION}")
        if number >= len(NUMBER_FORMATS) or rank > _MAX_RANK or reserved:
            raise BitstreamError("corrupted stream: the header of an exact copy is not allowed")
        if len(stream) < _HEADER.size + rank * _EXTENT.size:
            raise BitstreamError(f"truncated stream: no room for a shape of rank {rank}")
        shape = tuple(_EXTENT.unpack_from(stream, _HEADER.size + axis * _EXTENT.size)[0] for axis in range(rank))
        return cls(NUMBER_FORMATS[number], shape)


@dataclass(frozen=True, eq=False)
class ExactCopy:
    """A tensor of any shape and of a number format of :data:`NUMBER_FORMATS`, kept as it is."""

    tensor: Tensor  #: on the CPU, contiguous

    codec = "exact"

    @classmethod
    def of(cls, x: Tensor, clone: bool = True) -> ExactCopy:
        """Copy a tensor, or without ``clone`` keep one that nothing changes.

        Raises UserError for a kind or number format that has no exact copy.
        """
        if (kind := kind_of(x)) is not None:
            raise UserError(f"cannot keep {kind.name}: {kind.remedy}")
        if x.dtype not in NUMBER_FORMATS:
            names = ", ".join(map(dtype_name, NUMBER_FORMATS))
            raise UserError(f"cannot keep a tensor of dtype {dtype_name(x.dtype)}: use {names}")
        kept = x.detach().cpu().contiguous()
        return cls(kept.clone() if clone else kept)

    @property
    def header(self) -> ExactHeader:
        """Return number format and shape."""
        return ExactHeader(self.tensor.dtype, tuple(self.tensor.shape))

    @property
    def nbytes(self) -> int:
        """Return the length of the serialised stream."""
        return self.header.stream_bytes

    def to_bytes(self) -> bytes:
        """Return the serialised stream (docs/reference/bitstream.md, section 10)."""
        return b"".join(self.parts())

    def parts(self) -> Iterator[memoryview]:
        """Yield the serialised stream in pieces."""
        return with_checksum(self.header.pack(), self.tensor.reshape(-1).view(torch.uint8).numpy().data)

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return a copy of the values; the backend computes nothing."""
        return self.tensor.clone()


def parse(stream: bytes | memoryview) -> ExactCopy:
    """Return the copy in a stream; raise BitstreamError unless its length and checksum are right."""
    header = ExactHeader.unpack_start(stream)
    if len(stream) != header.stream_bytes:
        raise BitstreamError(f"corrupted or truncated stream: {len(stream)} bytes, but its header says {header.stream_bytes}")
    view = memoryview(stream)
    if checksum(view[:-CRC_BYTES]) != int.from_bytes(view[-CRC_BYTES:], "little"):
        raise BitstreamError("corrupted stream: the checksum does not match")
    begin = header.stream_bytes - CRC_BYTES - header.tensor_bytes
    values = payload_of(view[begin:-CRC_BYTES])
    if header.dtype is torch.bool and bool((values > 1).any()):
        raise BitstreamError("corrupted stream: a bool is neither 0 nor 1")
    return ExactCopy(values.view(header.dtype).reshape(header.shape))
