"""A reader of containers and exact copies, written from docs/reference/bitstream.md by struct and loops."""

import struct
import zlib

FORMATS = ("<f4", None, "<f2", "<f8", "?", "u1", "i1", "<i2", "<i4", "<i8")


def read(container):
    """Names and streams in order; asserts what a reader refuses."""
    magic, version, reserved, count = struct.unpack_from("<4sB3sI", container)
    assert (magic, version, reserved) == (b"CDC\x1a", 1, b"\0\0\0")
    assert count
    entries, place = [], 12
    for _ in range(count):
        name_bytes, stream_bytes = struct.unpack_from("<HQ", container, place)
        place += 10
        name = container[place : place + name_bytes].decode("utf-8")
        place += name_bytes
        assert name
        assert name not in [other for other, _ in entries]
        entries.append((name, container[place : place + stream_bytes]))
        assert len(entries[-1][1]) == stream_bytes
        place += stream_bytes
    assert container[place:] == struct.pack("<I", zlib.crc32(container[:place]))
    return entries


def read_exact(stream):
    """Number of the format, shape and bytes of the values."""
    magic, version, number, rank, reserved = struct.unpack_from("<4s4B", stream)
    assert (magic, version, reserved) == (b"CDX\x1a", 1, 0)
    shape = struct.unpack_from(f"<{rank}Q", stream, 8)
    assert stream[-4:] == struct.pack("<I", zlib.crc32(stream[:-4]))
    return number, shape, stream[8 + 8 * rank : -4]
