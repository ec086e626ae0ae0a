"""Grayscale JPEG files (ITU-T T.81, Annex B, baseline sequential; JFIF 1.01) around an entropy-coded segment."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from cdu_spec.huffman import HuffmanTables
from cdu_tools.errors import UserError

#: Largest height and width: T.81 allows 65535, but libjpeg, and with it most viewers, no more than this.
MAX_SIDE = 65500
_SOI, _APP0, _DQT, _SOF0, _DHT, _SOS, _EOI = 0xD8, 0xE0, 0xDB, 0xC0, 0xC4, 0xDA, 0xD9
_COMPONENT = 1
_DC_TABLE, _AC_TABLE = 0x00, 0x10
#: Version 1.01, density 1:1 without a unit, no thumbnail.
_JFIF = b"JFIF\0" + struct.pack(">HBHHBB", 0x0101, 0, 1, 1, 0, 0)


def jfif(height: int, width: int, divisors: Sequence[int], tables: HuffmanTables, segment: bytes) -> bytes:
    """Return the file of an image of ``height`` x ``width`` 8-bit samples.

    Parameters
    ----------
    height, width
        1 to MAX_SIDE (UserError otherwise). Blocks cover the image from left to right, strip by strip, to beyond its edges.
    divisors
        64 divisors 1..255 in zig-zag order.
    tables, segment
        Result of :func:`actcodec.golden.entropy_encoder.encode`.
    """
    if not (1 <= height <= MAX_SIDE and 1 <= width <= MAX_SIDE):
        raise UserError(f"an image of {height} x {width} does not fit a JPEG: 1 to {MAX_SIDE} rows and columns do")
    frame = struct.pack(">BHHB", 8, height, width, 1) + bytes([_COMPONENT, 0x11, 0])
    scan = bytes([1, _COMPONENT, 0, 0, 63, 0])
    huffman = bytes([_DC_TABLE]) + tables.dc.pack() + bytes([_AC_TABLE]) + tables.ac.pack()
    parts = (
        _marker(_SOI),
        _segment(_APP0, _JFIF),
        _segment(_DQT, bytes([0]) + bytes(divisors)),
        _segment(_SOF0, frame),
        _segment(_DHT, huffman),
        _segment(_SOS, scan),
        segment,
        _marker(_EOI),
    )
    return b"".join(parts)


def _marker(code: int) -> bytes:
    return bytes([0xFF, code])


def _segment(code: int, content: bytes) -> bytes:
    """Return a marker segment, whose length counts the two bytes of the length."""
    return _marker(code) + struct.pack(">H", len(content) + 2) + content
