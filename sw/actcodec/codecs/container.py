"""A container: several compressed tensors with names, one stream after the other (docs/reference/bitstream.md, section 10)."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping

from cdu_spec.bitstream import CRC_BYTES, BitstreamError
from cdu_tools.errors import UserError

from actcodec.codecs import exact_copy
from actcodec.codecs.compressed import PREFIX_BYTES, Compressed, Packed, check_size, from_bytes, header_of
from actcodec.codecs.exact_copy import ExactCopy, ExactHeader
from actcodec.codecs.jpeg.jpeg_base_compressed import JpegBaseCompressed

MAGIC = b"CDC\x1a"
VERSION = 1
#: Longest name of a tensor in UTF-8.
MAX_NAME_BYTES = (1 << 16) - 1
#: magic, version, three reserved bytes, number of tensors.
_HEADER = struct.Struct("<4sB3sI")
#: Bytes of the name and of the stream.
_ENTRY = struct.Struct("<HQ")

#: Tensor in a container.
Entry = Compressed | JpegBaseCompressed | ExactCopy


def size_of(lengths: Mapping[str, int]) -> int:
    """Return the bytes of a container whose streams have these lengths."""
    entries = sum(_ENTRY.size + len(name.encode()) + length for name, length in lengths.items())
    return _HEADER.size + entries + CRC_BYTES


def serialise(tensors: Mapping[str, Packed]) -> Iterator[bytes]:
    """Yield the parts of a container in order; one stream is in memory at a time.

    Parameters
    ----------
    tensors
        Compressed tensors by name, at least one. A name has 1 to :data:`MAX_NAME_BYTES` bytes in UTF-8.

    Raises UserError for no tensors, for a name that does not fit and for a tensor that has no stream.
    """
    if not 1 <= len(tensors) < 1 << 32:
        raise UserError(f"a container of {len(tensors)} tensors cannot be made: it needs 1 or more")
    names = {name: _encoded(name) for name in tensors}
    crc = 0
    for part in _parts(tensors, names):
        crc = zlib.crc32(part, crc)
        yield part
    yield crc.to_bytes(CRC_BYTES, "little")


def _parts(tensors: Mapping[str, Packed], names: Mapping[str, bytes]) -> Iterator[bytes]:
    yield _HEADER.pack(MAGIC, VERSION, bytes(3), len(tensors))
    for name, packed in tensors.items():
        stream = packed.to_bytes()
        yield _ENTRY.pack(len(names[name]), len(stream)) + names[name]
        yield stream


def _encoded(name: str) -> bytes:
    try:
        text = name.encode()
    except UnicodeEncodeError:
        raise UserError(f"the name {name!r} is no UTF-8: rename the tensor") from None
    if not 1 <= len(text) <= MAX_NAME_BYTES:
        raise UserError(f"a name of {len(text)} bytes does not fit a container: use 1 to {MAX_NAME_BYTES} bytes")
    return text


def parse(container: bytes, max_bytes: int | None = None) -> dict[str, Entry]:
    """Return the compressed tensors of a container by name, on the CPU.

    Raises BitstreamError for anything that is not exactly one intact container; OversizeError, before anything is made of it,
    where its tensors together have more than ``max_bytes``.
    """
    return {name: entry_of(stream) for name, stream in streams(io.BytesIO(container).read, max_bytes)}


def entry_of(stream: bytes) -> Entry:
    """Return the compressed tensor of one stream in a container; raise BitstreamError if the bytes are no stream."""
    return exact_copy.parse(stream) if _is_exact(stream) else from_bytes(stream)


def streams(read: Callable[[int], bytes], max_bytes: int | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield names and streams while reading a container; no more is read than the headers announce.

    Parameters
    ----------
    read
        Reads a number of bytes, or fewer at the end of the file.
    max_bytes
        As for :func:`parse`.

    The checksum is seen at the end: nothing may be kept of a container before the iteration is over.
    """
    crc = 0

    def take(size: int) -> bytes:
        nonlocal crc
        part = read(size)
        if len(part) != size:
            raise BitstreamError("truncated container: it ends before its last tensor does")
        crc = zlib.crc32(part, crc)
        return part

    magic, version, reserved, count = _HEADER.unpack(take(_HEADER.size))
    if magic != MAGIC:
        raise BitstreamError("not a container: it does not begin with the magic bytes")
    if version != VERSION:
        raise BitstreamError(f"container version {version} is not known: this software reads version {VERSION}")
    if any(reserved) or not count:
        raise BitstreamError("corrupted container: its header is not allowed")
    seen: set[str] = set()
    left = max_bytes
    for _ in range(count):
        name, size = _entry(take)
        if not name or name in seen:
            raise BitstreamError(f"corrupted container: the name {name!r} is empty or stands in it twice")
        seen.add(name)
        stream = take(min(size, PREFIX_BYTES))
        header = ExactHeader.unpack_start(stream) if _is_exact(stream) else header_of(stream)
        if left is not None:
            left -= check_size(header, left)
        if header.stream_bytes != size:
            raise BitstreamError(
                f"corrupted container: {size} bytes for tensor {name!r}, but its header says {header.stream_bytes}"
            )
        yield name, stream + take(size - len(stream))
    computed = crc
    if computed != int.from_bytes(take(CRC_BYTES), "little"):
        raise BitstreamError("corrupted container: the checksum does not match")
    if read(1):
        raise BitstreamError("corrupted container: there are bytes behind its checksum")


def _entry(take: Callable[[int], bytes]) -> tuple[str, int]:
    """Return the name and the length of the next stream."""
    length, size = _ENTRY.unpack(take(_ENTRY.size))
    try:
        return take(length).decode(), size
    except UnicodeDecodeError:
        raise BitstreamError("corrupted container: a name is no UTF-8") from None


def _is_exact(stream: bytes) -> bool:
    return stream[: len(exact_copy.MAGIC)] == exact_copy.MAGIC
