"""Reader of baseline grayscale JPEG files, written from ITU-T T.81 one bit after the other, and pictures for tests."""

import io
import math
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from cdu_spec.jpeg import ZIGZAG
from PIL import Image
from plain_stream import half_up
from sklearn.datasets import load_digits, load_sample_image


class RefusedError(Exception):
    """Segment that is not exactly the expected number of blocks."""


class Bits:
    """Bits of an entropy-coded segment, first bit at the top of a byte."""

    def __init__(self, segment):
        self.data, place = [], 0
        while place < len(segment):
            self.data.append(segment[place])
            if segment[place] == 0xFF:
                place += 1
                if place == len(segment) or segment[place] != 0:
                    raise RefusedError("marker")
            place += 1
        self.place = 0

    def next(self):
        byte, bit = divmod(self.place, 8)
        if byte >= len(self.data):
            raise RefusedError("end")
        self.place += 1
        return self.data[byte] >> (7 - bit) & 1

    def receive(self, count):
        value = 0
        for _ in range(count):
            value = 2 * value + self.next()
        return value

    def symbol(self, codes):
        """Return the next symbol, by longer and longer codes (T.81, F.2.2.3)."""
        code = 0
        for length in range(1, 17):
            code = 2 * code + self.next()
            if (length, code) in codes:
                return codes[length, code]
        raise RefusedError("code")

    def value(self, size):
        """Return the next value of ``size`` bits (T.81, F.2.2.1: EXTEND)."""
        value = self.receive(size)
        return value if size == 0 or value >> (size - 1) else value - (1 << size) + 1

    def finish(self):
        rest = 8 * len(self.data) - self.place
        if rest >= 8 or any(self.next() == 0 for _ in range(rest)):
            raise RefusedError("filling")


def codes_of(counts, symbols):
    """Return the codes of symbols (T.81, Annex C)."""
    codes, code, place = {}, 0, 0
    for length in range(1, 17):
        for _ in range(counts[length - 1]):
            codes[length, code] = symbols[place]
            code, place = code + 1, place + 1
        code *= 2
    return codes


def read_segment(segment, count, dc_codes, ac_codes):
    """Return blocks in zig-zag order, (count, 64); RefusedError as in docs/reference/bitstream.md, section 8."""
    bits, blocks, dc = Bits(segment), np.zeros((count, 64), dtype=np.int64), 0
    for block in blocks:
        dc += bits.value(bits.symbol(dc_codes))
        if not -1024 <= dc <= 1023:
            raise RefusedError("DC")
        block[0] = dc
        place, owed = 1, False
        while place < 64:
            symbol = bits.symbol(ac_codes)
            run, size = symbol >> 4, symbol & 15
            if symbol == 0:
                if owed:
                    raise RefusedError("F0 without a coefficient after it")
                break
            owed = size == 0
            place += run
            # A coefficient must follow, even after a ZRL, which itself is the last of its zeros.
            if place > (62 if size == 0 else 63):
                raise RefusedError("run")
            block[place] = bits.value(size)
            place += 1
    bits.finish()
    return blocks


@dataclass
class File:
    """Baseline JPEG of one component."""

    height: int
    width: int
    divisors: tuple  #: in zig-zag order
    dc: tuple  #: counts, symbols
    ac: tuple
    segment: bytes

    @property
    def blocks(self):
        return -(-self.height // 8) * -(-self.width // 8)

    def coefficients(self):
        return read_segment(self.segment, self.blocks, codes_of(*self.dc), codes_of(*self.ac))


def read_file(data):
    """Return the parts of a file; asserts that it follows T.81 and JFIF."""
    assert data[:2] == b"\xff\xd8"
    assert data[-2:] == b"\xff\xd9"
    place, tables, seen = 2, {}, []
    while True:
        assert data[place] == 0xFF
        marker, length = data[place + 1], int.from_bytes(data[place + 2 : place + 4], "big")
        content = data[place + 4 : place + 2 + length]
        place += 2 + length
        seen.append(marker)
        if marker == 0xE0:
            assert content[:5] == b"JFIF\0"
            assert len(content) == 14
        elif marker == 0xDB:
            assert content[0] == 0
            divisors = tuple(content[1:])
            assert len(divisors) == 64
        elif marker == 0xC0:
            precision, components, identifier, sampling, table = content[0], content[5], *content[6:]
            assert (precision, components, sampling, table) == (8, 1, 0x11, 0)
            height, width = int.from_bytes(content[1:3], "big"), int.from_bytes(content[3:5], "big")
        elif marker == 0xC4:
            while content:
                counts = tuple(content[1:17])
                tables[content[0]] = (counts, tuple(content[17 : 17 + sum(counts)]))
                content = content[17 + sum(counts) :]
        else:
            assert marker == 0xDA
            assert content == bytes([1, identifier, 0, 0, 63, 0])
            break
    assert seen[0] == 0xE0
    return File(height, width, divisors, tables[0x00], tables[0x10], data[place:-2])


def libjpeg_file(samples, **options):
    """Return a file that libjpeg wrote."""
    out = io.BytesIO()
    Image.fromarray(samples, "L").save(out, "JPEG", **options)
    return out.getvalue()


def libjpeg_samples(data):
    """Return the samples that libjpeg decodes, (height, width) uint8."""
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        assert (image.format, image.mode) == ("JPEG", "L")
        return np.asarray(image)


def digits():
    """Return handwritten digits side by side, (8 * 30, 8 * 40) uint8."""
    images = load_digits().images[:1200].reshape(30, 40, 8, 8)
    return (images.transpose(0, 2, 1, 3).reshape(240, 320) * 15.9375).astype(np.uint8)


def photograph():
    """Return a part of a photograph in grey, (203, 157) uint8: no multiples of 8."""
    return np.asarray(Image.fromarray(load_sample_image("china.jpg")).convert("L"))[100:303, 200:357].copy()


def noise():
    """Return random samples, (64, 72) uint8."""
    return np.random.default_rng(0).integers(0, 256, (64, 72), dtype=np.uint8)


def extremes():
    """Return blocks of only the least and the greatest sample, (48, 40) uint8."""
    return np.random.default_rng(1).choice(np.array([0, 255], dtype=np.uint8), (48, 40))


IMAGES = {"digits": digits, "photograph": photograph, "noise": noise, "extremes": extremes}


#: Counts and symbols of the standard tables as libjpeg writes them.
STANDARD = (read_file(libjpeg_file(noise())).dc, read_file(libjpeg_file(noise())).ac)


def decode(stream):
    """Return number format and float32 values of a stream, by docs/reference/bitstream.md, section 8."""
    fields = struct.unpack_from("<4s8BQ4I", stream)
    magic, version, form, const_bits, pass1_bits, kind, *reserved, size, n, c, h, w = fields
    assert (magic, version, reserved) == (b"CDJ\x1a", 1, [0, 0, 0])
    assert struct.unpack("<I", stream[-4:])[0] == zlib.crc32(stream[:-4])
    divisors, place = stream[36:100], 100
    tables = list(STANDARD)
    if kind == 1:
        for number in range(2):
            counts = stream[place : place + 16]
            tables[number] = (counts, stream[place + 16 : place + 16 + sum(counts)])
            place += 16 + sum(counts)
    reciprocals = struct.unpack_from(f"<{c}f", stream, place)
    place += 4 * c
    segment = stream[place:-4]
    assert len(segment) == size
    across, strips = -(-w // 8), -(-n * c * h // 8)
    blocks = read_segment(segment, across * strips, *(codes_of(*table) for table in tables))
    basis = np.array(
        [[1 << const_bits] * 8]
        + [
            [round(math.sqrt(2) * math.cos((2 * x + 1) * k * math.pi / 16) * 2**const_bits) for x in range(8)]
            for k in range(1, 8)
        ]
    )
    samples = np.zeros((8 * strips, 8 * across), dtype=np.int64)
    for number, block in enumerate(blocks):
        natural = np.zeros(64, dtype=np.int64)
        for place, value in enumerate(block):
            natural[ZIGZAG[place]] = min(max(value * divisors[place], -2048), 2047)
        columns = half_up(basis.T @ natural.reshape(8, 8), const_bits - pass1_bits)
        rows = half_up(columns @ basis, const_bits + pass1_bits + 3)
        y, x = divmod(number, across)
        samples[8 * y : 8 * y + 8, 8 * x : 8 * x + 8] = rows.clip(-128, 127)
    matrix = samples[: n * c * h, :w].reshape(n, c, h, w).astype(np.float32)
    return form, matrix * np.array(reciprocals, dtype=np.float32)[:, None, None]
