"""Streams of all modes, read by a decoder written from docs/bitstream.md with struct and loops."""

import math
import struct
import zlib

import actcodec
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st


def half_up(value, shift):
    return (value + (1 << (shift - 1))) >> shift


def sat(value, low, high):
    return max(low, min(high, value))


def read_zvc(payload, count):
    blocks, place = [], 0
    for _ in range(count):
        mask, place = payload[place : place + 8], place + 8
        block = [0] * 64
        for j in range(8):
            for i in range(8):
                if mask[j] >> i & 1:
                    block[8 * j + i] = struct.unpack_from("<b", payload, place)[0]
                    place += 1
        blocks.append(block)
    assert place == len(payload)
    return blocks


def codes_of(row, count, bits):
    """Codes of a (short) row of codes."""
    word = int.from_bytes(row, "little")
    return [word >> (i * bits) & (2**bits - 1) for i in range(count)]


def read_head(head, bits):
    low, m, e = struct.unpack("<hBB", head)
    assert m
    assert e <= 9
    assert low + (2**bits - 1) * m * 2**e <= 65535
    return low, m << e


def read_affine(mode, payload, rows, row_beats, quantizer):
    """Integers of the matrix in order, padding included (at the bottom only where it is part of a block)."""
    bits, step_log2, block_range = quantizer
    step, greatest, place = 1 << step_log2, 2**bits - 1, 0
    width = 8 * row_beats
    if mode in (6, 7):
        strips = -(-rows // 8)
        out = [0] * (8 * strips * width)
        for index in range(strips * row_beats):
            if mode == 6 and not block_range:
                mean = struct.unpack_from("<h", payload, place)[0]
                low, place = mean - greatest * step // 2, place + 2
            elif mode == 6 or index % 4 == 0:
                low, step = read_head(payload[place : place + 4], bits)
                place += 4
            strip, across = divmod(index, row_beats)
            for y in range(8):
                start = (8 * strip + y) * width + 8 * across
                out[start : start + 8] = [low + c * step for c in codes_of(payload[place : place + bits], 8, bits)]
                place += bits
    elif mode in (8, 9):
        out = []
        for _ in range(rows * row_beats):
            codes = codes_of(payload[place : place + bits], 8, bits)
            half = step // 2 if mode == 8 else 0
            out += [(c - 2 ** (bits - 1)) * step + half for c in codes]
            place += bits
    else:
        out = []
        for _ in range(-(-rows * row_beats // 8)):
            mask, place = payload[place : place + 8], place + 8
            for j in range(8):
                count = f"{mask[j]:b}".count("1")
                size = -(-count * bits // 8)
                kept = iter(codes_of(payload[place : place + size], count, bits))
                place += size
                for i in range(8):
                    c = next(kept) if mask[j] >> i & 1 else 0
                    out.append((c - 2**bits if c >= 2 ** (bits - 1) else c) * step)
    assert place == len(payload)
    return out


def inverse_dct(c, const_bits, pass1_bits):
    m = [[1 << const_bits] * 8]
    for k in range(1, 8):
        row = [math.sqrt(2) * math.cos((2 * x + 1) * k * math.pi / 16) * 2**const_bits for x in range(8)]
        m.append([math.floor(entry + 0.5) for entry in row])
    a, b = const_bits - pass1_bits, const_bits + pass1_bits + 3
    t = [[half_up(sum(m[v][y] * c[v][u] for v in range(8)), a) for u in range(8)] for y in range(8)]
    return [[sat(half_up(sum(m[u][x] * t[y][u] for u in range(8)), b), -128, 127) for x in range(8)] for y in range(8)]


def decode(stream):
    """float32 values of the tensor, before conversion to the original number format."""
    magic, version, mode, form, rank, const_bits, pass1_bits, bits, step, payload_bytes = struct.unpack_from("<4s8BQ", stream)
    assert (magic, version, step & 0x70) == (b"CDU\x1a", 1, 0)
    step_log2, block_range = step & 15, step >> 7
    assert bits in ((1, 2, 4, 8) if mode > 5 else (0,))
    found = mode == 7 or block_range
    assert step_log2 == 0 if found or mode < 6 else (mode == 6) <= step_log2 <= 16 - bits
    assert not block_range or mode == 6
    assert struct.unpack("<I", stream[-4:])[0] == zlib.crc32(stream[:-4])
    place = 20
    shape = struct.unpack_from(f"<{rank}I", stream, place)
    place += 4 * rank
    count = math.prod(shape)
    rows, columns, channels, channel_rows = 1, count, 1, 1
    if mode in (3, 6):
        n, c, h, w = shape
        rows, columns, channels, channel_rows = n * c * h, w, c, h
    elif mode == 7:
        rows, columns, channel_rows = -(-count // 32), 32, 2**62
    elif mode in (1, 2, 8, 9, 10) and rank >= 3 and math.prod(shape[2:]) >= 8:
        rows, columns, channels = shape[0] * shape[1], math.prod(shape[2:]), shape[1]
    shifts = []
    if mode == 3:
        word = int.from_bytes(stream[place : place + 24], "little")
        shifts = [word >> (3 * i) & 7 for i in range(64)]
        place += 24
    reciprocals = []
    if mode not in (4, 5):
        reciprocals = struct.unpack_from(f"<{channels}f", stream, place)
        place += 4 * channels
        assert all(2.0**-120 <= r <= 2.0 ** (111 if mode > 5 else 120) for r in reciprocals)
    offsets = [0] * channels
    if mode == 8:
        offsets = struct.unpack_from(f"<{channels}h", stream, place)
        place += 2 * channels
    payload = stream[place:-4]
    assert len(payload) == payload_bytes
    row_beats = -(-columns // 8)
    if mode == 4:
        values = np.array([payload[i // 8] >> (i % 8) & 1 for i in range(count)], dtype=np.float32)
        return form, values.reshape(shape)
    if mode == 5:
        size = 2 if form else 4
        assert len(payload) == 8 * row_beats * size
        assert not any(payload[count * size :])
        patterns = [int.from_bytes(payload[size * i : size * (i + 1)], "little") for i in range(count)]
        if form == 2:
            return form, np.array(patterns, dtype=np.uint16).view(np.float16).astype(np.float32).reshape(shape)
        bits = [pattern << 16 * (form == 1) for pattern in patterns]
        return form, np.array(bits, dtype=np.uint32).view(np.float32).reshape(shape)
    width = 8 * row_beats
    if mode > 5:
        sequence = read_affine(mode, payload, rows, row_beats, (bits, step_log2, block_range))
    elif mode == 1:
        sequence = list(struct.unpack(f"<{len(payload)}b", payload))
    elif mode == 2:
        sequence = [value for block in read_zvc(payload, -(-rows * row_beats // 8)) for value in block]
    else:
        strips = -(-rows // 8)
        sequence = [0] * (8 * strips * width)
        for index, block in enumerate(read_zvc(payload, strips * row_beats)):
            strip, across = divmod(index, row_beats)
            c = [[sat(block[8 * u + v] * 2 ** shifts[8 * u + v], -2048, 2047) for u in range(8)] for v in range(8)]
            samples = inverse_dct(c, const_bits, pass1_bits)
            for y in range(8):
                start = (8 * strip + y) * width + 8 * across
                sequence[start : start + 8] = samples[y]
    out = np.empty((rows, columns), dtype=np.float32)
    for row in range(rows):
        channel = row // channel_rows % channels
        for column in range(columns):
            y = sequence[row * width + column] + offsets[channel]
            assert -65536 <= y <= 65535
            out[row, column] = np.float32(y * reciprocals[channel])  # exact in double, rounded once
    return form, out.reshape(-1)[:count].reshape(shape)


FORMATS = [torch.float32, torch.bfloat16, torch.float16]
CODECS = [
    ("sfpr", {}),
    ("sfpr", {"scale_bits": 24, "S": 1.0}),
    ("sfpr+zvc", {}),
    ("brc", {}),
    ("bypass", {}),
    ("jpeg-act", {}),
    ("jpeg-act", {"dqt": "optH", "rounding": "trunc"}),
    ("jpeg-act", {"dqt": "image60", "const_bits": 13, "pass1_bits": 4, "scale_bits": 11}),
    ("division", {"range": "channel"}),
    ("division", {"range": "channel", "bits": 8, "step_log2": 3, "scale_bits": 24}),
    ("division", {"bits": 1, "rounding": "nearest"}),
    ("division", {"bits": 4}),
    ("actnn", {}),
    ("actnn", {"bits": 8, "scale_bits": 11}),
    ("blpa", {}),
    ("blpa", {"bits": 2, "step_log2": 0, "gamma": 0.5, "beta": 0.25}),
    ("autoquant", {}),
    ("autoquant", {"bits": 4, "error_bound": 0.3}),
    ("autoquantz", {"bits": 1}),
    ("autoquantz", {"bits": 2, "step_log2": 5}),
    ("autoquantz", {"bits": 4, "rounding": "nearest"}),
    ("autoquantz", {"bits": 8}),
]


def check(x, name, options):
    packed = actcodec.codec(name, **options).compress(x)
    stream = packed.to_bytes()
    assert len(stream) == packed.nbytes
    form, values = decode(stream)
    assert FORMATS[form] == x.dtype
    expected = torch.from_numpy(values).to(x.dtype)
    for mine in (packed.decompress(), actcodec.from_bytes(stream).decompress()):
        assert mine.dtype == x.dtype
        assert torch.equal(mine, expected)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(("name", "options"), CODECS)
@settings(max_examples=12, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 70)),
    seed=st.integers(0, 2**31),
    relu=st.booleans(),
)
def test_independent_decoder_gives_the_same_values(name, options, dtype, shape, seed, relu):
    if not actcodec.codec(name).fits(shape):
        shape = (*shape[:2], max(shape[2], 8), max(shape[3], 8))
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=random) * 10.0 ** torch.randint(-3, 4, (1, shape[1], 1, 1), generator=random)
    check((x.relu() if relu else x).to(dtype), name, options)


@pytest.mark.parametrize("shape", [(1,), (7,), (64,), (3, 5), (2, 3, 7), (2, 3, 8), (2, 3, 65), (2, 2, 2, 2, 2), (1, 1, 1, 1)])
@pytest.mark.parametrize("name", ["sfpr", "sfpr+zvc", "brc", "bypass", "actnn", "blpa", "autoquant", "autoquantz"])
def test_other_ranks(name, shape):
    check(torch.randn(shape, generator=torch.Generator().manual_seed(1)), name, {})


def test_known_bytes():
    """A stream worked out by hand: two values in mode sfpr+zvc with S = 1."""
    stream = actcodec.codec("sfpr+zvc", S=1.0).compress(torch.tensor([0.0, -4.0, 2.0])).to_bytes()
    body = bytes.fromhex("4344551a 01 02 00 01 00 00 0000 0a00000000000000 03000000 0000003d 0600000000000000 80 40")
    assert stream == body + zlib.crc32(body).to_bytes(4, "little")


def test_known_bytes_of_division():
    """Worked out by hand: 56 values of 2.0 and a column of -2.0; k is 32767 / 2 rounded down to 8 significant bits, 16320.

    Least value -32640, spread 65280, B = 3: d = 21760, e = 15 - 8 = 7, m = 21760 / 128 = 170, so that 3 steps are the spread.
    """
    x = torch.full((1, 1, 8, 8), 2.0)
    x[..., 0] = -2.0
    stream = actcodec.codec("division", rounding="nearest", scale_bits=8).compress(x).to_bytes()
    body = bytes.fromhex("4344551a 01 06 00 04 00 00 02 80 1400000000000000") + struct.pack("<4If", 1, 1, 8, 8, 1 / 16320)
    body += struct.pack("<hBB", -32640, 170, 7) + bytes([0xFC, 0xFF]) * 8
    assert stream == body + zlib.crc32(body).to_bytes(4, "little")


def test_known_bytes_of_bypass():
    """Worked out by hand: three bfloat16 values, 1.0, -2.0 and a NaN, and five of padding."""
    values = torch.tensor([0x3F80, 0xC000 - 0x10000, 0x7FC1], dtype=torch.int16).view(torch.bfloat16)
    body = bytes.fromhex("4344551a 01 05 01 01 00 00 0000 1000000000000000 03000000 803f 00c0 c17f") + bytes(10)
    assert actcodec.codec("bypass").compress(values).to_bytes() == body + zlib.crc32(body).to_bytes(4, "little")
