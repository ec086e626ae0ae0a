"""A decoder of all modes, written from docs/reference/bitstream.md by struct and loops. It asserts what it shall refuse."""

import math
import struct
import zlib

import numpy as np
import plain_gmc


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


#: Code bits, exponent bits, fraction bits.
MX_FORMATS = [(8, 0, 6), (8, 4, 3), (8, 5, 2), (6, 2, 3), (6, 3, 2), (4, 2, 1)]
FORMATS = [(np.float32, 3.4028234663852886e38), (None, 3.3895313892515355e38), (np.float16, 65504.0)]


def mx_number(number, code):
    width, e, f = MX_FORMATS[number]
    if e == 0:
        return (code - 256 if code > 127 else code) / 64
    sign = -1.0 if code >> (width - 1) else 1.0
    exponent, fraction = code >> f & (2**e - 1), code & (2**f - 1)
    if number == 1 and code & 127 == 127:
        return math.nan
    if number == 2 and exponent == 31:
        return math.nan if fraction else sign * math.inf
    bias = 2 ** (e - 1) - 1
    return sign * (fraction * 2.0 ** (1 - bias - f) if exponent == 0 else (1 + fraction / 2**f) * 2.0 ** (exponent - bias))


def read_mx(number, payload, count, form):
    """float32 values; those of other number formats are limited to their greatest number."""
    width, greatest = MX_FORMATS[number][0], FORMATS[form][1]
    size, values = 1 + 4 * width, []
    assert len(payload) == -(-count // 32) * size
    for place in range(0, len(payload), size):
        scale = payload[place]
        for row in range(4):
            for code in codes_of(payload[place + 1 + row * width :][:width], 8, width):
                value = math.nan if scale == 255 else mx_number(number, code) * 2.0 ** (scale - 127)
                value = value if abs(value) >= 2.0**-126 or math.isnan(value) else math.copysign(0.0, value)
                values.append(value if math.isnan(value) else sat(value, -greatest, greatest))
    return np.array(values[:count], dtype=np.float32)


def rebuilt(q, shift, point):
    sign = (q > 0) - (q < 0)
    return sat(q * 2**shift + sign * (point * 2**shift // 8), -2048, 2047)


def inverse_dct(c, const_bits, pass1_bits):
    m = [[1 << const_bits] * 8]
    for k in range(1, 8):
        row = [math.sqrt(2) * math.cos((2 * x + 1) * k * math.pi / 16) * 2**const_bits for x in range(8)]
        m.append([math.floor(entry + 0.5) for entry in row])
    a, b = const_bits - pass1_bits, const_bits + pass1_bits + 3
    t = [[half_up(sum(m[v][y] * c[v][u] for v in range(8)), a) for u in range(8)] for y in range(8)]
    return [[sat(half_up(sum(m[u][x] * t[y][u] for u in range(8)), b), -128, 127) for x in range(8)] for y in range(8)]


def read_header(stream):
    """Mode, number format, shape, form of the transform, coder and point, and settings of the affine modes or of mx."""
    magic, version, mode, form, rank, const_bits, pass1_bits, bits, step, payload_bytes = struct.unpack_from("<4s8BQ", stream)
    assert magic == b"CDU\x1a"
    coder = point = 0
    if version == 2:
        (coder, point), (bits, step) = (bits, step), (0, 0)
        assert mode == 3
        assert coder or point
        assert coder <= 1
        assert point <= 4
    else:
        assert version == 1
    assert step & 0x70 == 0
    step_log2, block_range = step & 15, step >> 7
    assert bits in ((1, 2, 4, 8) if 5 < mode < 11 else range(6) if mode == 11 else (0,))
    found = mode == 7 or block_range
    assert step_log2 == 0 if found or mode < 6 or mode == 11 else (mode == 6) <= step_log2 <= 16 - bits
    assert not block_range or mode == 6
    shape = struct.unpack_from(f"<{rank}I", stream, 20)
    return mode, form, shape, (const_bits, pass1_bits), (coder, point), (bits, step_log2, block_range), payload_bytes


def matrix_of(mode, shape):
    """Rows, columns, channels, and the rows in a row that have the same channel."""
    count = math.prod(shape)
    if mode in (3, 6):
        n, c, h, w = shape
        return n * c * h, w, c, h
    if mode == 7:
        return -(-count // 32), 32, 1, 2**62
    if mode in (1, 2, 8, 9, 10) and len(shape) >= 3 and math.prod(shape[2:]) >= 8:
        return shape[0] * shape[1], math.prod(shape[2:]), shape[1], 1
    return 1, count, 1, 1


def read_bypass(payload, form, count):
    size = 2 if form else 4
    assert len(payload) == 8 * -(-count // 8) * size
    patterns = [int.from_bytes(payload[size * i : size * (i + 1)], "little") for i in range(count)]
    if form == 2:
        return np.array(patterns, dtype=np.uint16).view(np.float16).astype(np.float32)
    bits = [pattern << 16 * (form == 1) for pattern in patterns]
    return np.array(bits, dtype=np.uint32).view(np.float32)


def read_jpeg(payload, rows, row_beats, transform, shifts, coding):
    """Integers of the matrix in order, padding at the bottom included."""
    (coder, point), width, strips = coding, 8 * row_beats, -(-rows // 8)
    sequence = [0] * (8 * strips * width)
    read = plain_gmc.decode if coder else read_zvc
    for index, block in enumerate(read(payload, strips * row_beats)):
        strip, across = divmod(index, row_beats)
        c = [[rebuilt(block[8 * u + v], shifts[8 * u + v], point) for u in range(8)] for v in range(8)]
        samples = inverse_dct(c, *transform)
        for y in range(8):
            start = (8 * strip + y) * width + 8 * across
            sequence[start : start + 8] = samples[y]
    return sequence


def decode(stream):
    """float32 values of the tensor, before conversion to the original number format."""
    mode, form, shape, transform, coding, settings, payload_bytes = read_header(stream)
    assert struct.unpack("<I", stream[-4:])[0] == zlib.crc32(stream[:-4])
    place, count = 20 + 4 * len(shape), math.prod(shape)
    rows, columns, channels, channel_rows = matrix_of(mode, shape)
    shifts = []
    if mode == 3:
        word = int.from_bytes(stream[place : place + 24], "little")
        shifts = [word >> (3 * i) & 7 for i in range(64)]
        place += 24
    reciprocals = []
    if mode not in (4, 5, 11):
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
    if mode == 11:
        return form, read_mx(settings[0], payload, count, form).reshape(shape)
    if mode == 4:
        values = np.array([payload[i // 8] >> (i % 8) & 1 for i in range(count)], dtype=np.float32)
        return form, values.reshape(shape)
    if mode == 5:
        return form, read_bypass(payload, form, count).reshape(shape)
    if mode > 5:
        sequence = read_affine(mode, payload, rows, row_beats, settings)
    elif mode == 1:
        sequence = list(struct.unpack(f"<{len(payload)}b", payload))
    elif mode == 2:
        sequence = [value for block in read_zvc(payload, -(-rows * row_beats // 8)) for value in block]
    else:
        sequence = read_jpeg(payload, rows, row_beats, transform, shifts, coding)
    out = np.empty((rows, columns), dtype=np.float32)
    for row in range(rows):
        channel = row // channel_rows % channels
        for column in range(columns):
            y = sequence[8 * row * row_beats + column] + offsets[channel]
            assert -65536 <= y <= 65535
            out[row, column] = np.float32(y * reciprocals[channel])  # exact in double, rounded once
    return form, out.reshape(-1)[:count].reshape(shape)
