"""Results of codecs: compressed tensors that carry everything that decoding needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from cdu_spec.bitstream import Header
from cdu_spec.modes import STREAM_NAMES
from cdu_tools.errors import UserError
from cdu_tools.texts import extents
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.job import NO_OFFSETS
from actcodec.backends.named import backend as backend_of
from actcodec.codecs.jpeg.jpeg_base_compressed import JpegBaseCompressed
from actcodec.golden import bitstream, jpeg_base_stream
from actcodec.golden.jpeg_base_stream import JpegBaseHeader

#: Greatest length of a stream's header, Huffman tables included.
PREFIX_BYTES = 1 << 13


class OversizeError(UserError, ValueError):
    """Raised for a stream whose tensor is larger than allowed; ``limit`` is the name of what allows more."""

    def __init__(self, found: str, limit: str = "max_bytes") -> None:
        super().__init__(f"{found}, a greater {limit} allows more")
        self.found = found


class Packed(Protocol):
    """Result of a codec's ``compress``."""

    @property
    def nbytes(self) -> int:
        """Return the number of bytes kept, everything included."""

    def to_bytes(self) -> bytes:
        """Return the serialised stream; raise UserError if the codec has none."""

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor in the original shape, in the original dtype and on the original device."""


@dataclass(frozen=True, eq=False)
class Compressed:
    """Compressed tensor in memory; reciprocals and payload stay on the tensor's device."""

    header: Header
    shifts: tuple[int, ...]  #: 64 shifts in payload order; empty outside jpeg-act
    reciprocals: Tensor  #: float32 (channels,); empty in brc, bypass and mx
    payload: Tensor  #: uint8 (header.payload_bytes,)
    offsets: Tensor = field(default_factory=lambda: NO_OFFSETS)  #: blpa: int16 (channels,); else empty

    @property
    def codec(self) -> str:
        """Return the name of the codec that made the tensor."""
        return self.header.codec

    @property
    def nbytes(self) -> int:
        """Return the length of the serialised stream: header, tables, scales, payload, checksum."""
        return self.header.stream_bytes

    def to_bytes(self) -> bytes:
        """Return the serialised stream (docs/reference/bitstream.md)."""
        return b"".join(self.parts())

    def parts(self) -> Iterator[memoryview]:
        """Yield the serialised stream in pieces; a payload in a mapped file is never in memory as a whole."""
        return bitstream.serialise(self.header, self.shifts, self.reciprocals, self.payload, self.offsets)

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor, from nothing but this stream.

        Raises BitstreamError when the payload is corrupted.
        """
        through = backend_of(backend)
        return through.decompress_stream(self.header, self.shifts, self.reciprocals, self.payload, self.offsets)


@dataclass(frozen=True, eq=False)
class RawCopy:
    """Result of codec ``none``: an exact copy, for comparison."""

    tensor: Tensor

    @property
    def nbytes(self) -> int:
        """Return the bytes of the values."""
        return self.tensor.numel() * self.tensor.element_size()

    def to_bytes(self) -> bytes:
        """Raise UserError: the copy is not a stream; codec ``bypass`` makes one."""
        raise UserError(f"codec 'none' has no bitstream: use {', '.join(STREAM_NAMES)}")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return a copy of the values."""
        return self.tensor.clone()


def from_bytes(stream: bytes | memoryview, max_bytes: int | None = None) -> Compressed | JpegBaseCompressed:
    """Return the compressed tensor of a stream of either kind (docs/reference/bitstream.md), on the CPU.

    Raises BitstreamError unless ``stream`` is exactly one intact stream. Raises OversizeError, before anything is decoded, if
    its tensor has more than ``max_bytes``: a small stream can expand 100 times.
    """
    if max_bytes is not None:
        check_size(header_of(stream), max_bytes)
    if _is_jpeg_base(stream):
        return JpegBaseCompressed(*jpeg_base_stream.parse(stream))
    return Compressed(*bitstream.parse(stream))


def header_of(start: bytes | memoryview) -> Header | JpegBaseHeader:
    """Return a stream's header, of either kind, from its first :data:`PREFIX_BYTES`; raise BitstreamError if there is none."""
    return jpeg_base_stream.unpack_start(start) if _is_jpeg_base(start) else Header.unpack_start(start)


class TensorHeader(Protocol):
    """The part of a header that says how large its tensor is."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents of the tensor."""

    @property
    def tensor_bytes(self) -> int:
        """Return the bytes of the tensor."""


def check_size(header: TensorHeader, max_bytes: int) -> int:
    """Return the bytes of the header's tensor; raise OversizeError if they are more than ``max_bytes``."""
    size = header.tensor_bytes
    if size > max_bytes:
        raise OversizeError(f"its tensor of shape {extents(header.shape)} has {size} bytes: {max_bytes} are allowed")
    return size


def _is_jpeg_base(stream: bytes | memoryview) -> bool:
    return stream[: len(jpeg_base_stream.MAGIC)] == jpeg_base_stream.MAGIC


def decompress(compressed: Packed, backend: str | Backend = "torch") -> Tensor:
    """Return the reconstructed tensor in the original shape, dtype and device; no codec is needed."""
    return compressed.decompress(backend)
