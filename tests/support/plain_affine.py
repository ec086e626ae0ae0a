"""Encoder of the affine modes, written from docs/reference/bitstream.md with loops over Python integers."""

BOX = (6, 5, 12, 10, 1, 14, 7, 9, 11, 0, 3, 13, 8, 15, 4, 2)


def rotl(word, places):
    return (word << places | word >> (16 - places)) & 0xFFFF


def random_row(number, seed):
    """Eight random numbers of a row of values."""
    w = [number & 0xFFFF, number >> 16 & 0xFFFF, seed & 0xFFFF, seed >> 16]
    for c in (1, 2, 4, 9, 18, 5, 11, 22):
        w[0] ^= c
        out = [0, 0, 0, 0]
        for j in range(16):
            nibble = BOX[sum((w[i] >> j & 1) << i for i in range(4))]
            for i in range(4):
                out[i] |= (nibble >> i & 1) << j
        w = [out[0], rotl(out[1], 1), rotl(out[2], 12), rotl(out[3], 13)]
    return w + [rotl(w[i], 5) ^ w[(i + 1) % 4] for i in range(4)]


def step_of(spread, bits):
    d = max(1, -(-spread // (2**bits - 1)))
    e = max(0, d.bit_length() - 8)
    m = -(-d // 2**e)
    return (128, e + 1) if m == 256 else (m, e)


def code(x16, low, m, e, bits, rho):
    s = 8 - m.bit_length()
    inv = (2**23 + (m << s) // 2) // (m << s)
    t = max(0, min(65535, x16 - low))
    v = (t * inv) >> (7 + e - s)
    return min(2**bits - 1, (v + rho) >> 16)


def pack_row(codes, bits):
    word = sum(c << (i * bits) for i, c in enumerate(codes))
    return word.to_bytes(-(-len(codes) * bits // 8), "little")


def int16(value):
    return value.to_bytes(2, "little", signed=True)


class Encoder:
    """Payload of a matrix of x16, a list of rows that are already padded."""

    def __init__(self, bits, step_log2, rounding, seed):
        self.bits, self.step_log2, self.rounding, self.seed = bits, step_log2, rounding, seed
        self.rows = 0

    def row(self, values, low, m, e):
        """Codes of the next row of 8 values."""
        rho = {"stochastic": random_row(self.rows, self.seed), "nearest": [32768] * 8, "down": [0] * 8}[self.rounding]
        self.rows += 1
        return [code(x, low, m, e, self.bits, r) for x, r in zip(values, rho, strict=True)]

    def division(self, matrix, block_range):
        out = b""
        for top in range(0, len(matrix), 8):
            for left in range(0, len(matrix[0]), 8):
                block = [row[left : left + 8] for row in matrix[top : top + 8]]
                values = [x for row in block for x in row]
                if block_range:
                    low = min(values)
                    m, e = step_of(max(values) - low, self.bits)
                    out += int16(low) + bytes([m, e])
                else:
                    mean = (sum(values) + 32) >> 6
                    low, m, e = mean - ((2**self.bits - 1) << (self.step_log2 - 1)), 1, self.step_log2
                    out += int16(mean)
                for row in block:
                    out += pack_row(self.row(row, low, m, e), self.bits)
        return out

    def actnn(self, values):
        out = b""
        for first in range(0, len(values), 256):
            group = values[first : first + 256]
            m, e = step_of(max(group) - min(group), self.bits)
            out += int16(min(group)) + bytes([m, e])
            for block in range(4):
                for row in range(8):
                    at = 32 * row + 8 * block
                    out += pack_row(self.row(group[at : at + 8], min(group), m, e), self.bits)
        return out

    def fixed(self, beats):
        low = -(2 ** (self.bits - 1 + self.step_log2))
        return b"".join(pack_row(self.row(beat, low, 1, self.step_log2), self.bits) for beat in beats)

    def masked(self, beats):
        low, zero = -(2 ** (self.bits - 1 + self.step_log2)), 2 ** (self.bits - 1)
        out = b""
        for first in range(0, len(beats), 8):
            mask, body = bytearray(8), b""
            for j, beat in enumerate(beats[first : first + 8]):
                codes = self.row(beat, low, 1, self.step_log2)
                mask[j] = sum((c != zero) << i for i, c in enumerate(codes))
                body += pack_row([(c - zero) % 2**self.bits for c in codes if c != zero], self.bits)
            out += bytes(mask) + body
        return out
