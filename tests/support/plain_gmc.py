"""Decoder of GMC, written from docs/reference/bitstream.md bit by bit; only the tables come from the project."""

from itertools import pairwise

from cdu_spec.gmc import A_CODES, B_CODES, MASK_CODES


class Bits:
    """Bits of a body, with zeros behind its end."""

    def __init__(self, body: bytes) -> None:
        self.text = "".join(f"{byte:08b}"[::-1] for byte in body)
        self.place = 0

    def bit(self) -> int:
        """Return the next bit."""
        self.place += 1
        return int(self.text[self.place - 1]) if self.place <= len(self.text) else 0

    def number(self, count: int) -> int:
        """Return the number of the next ``count`` bits, lowest first."""
        return sum(self.bit() << i for i in range(count))

    def symbol(self, words: tuple[str, ...]) -> int:
        """Return the index of the code word that comes next."""
        word = ""
        while word not in words:
            word += str(self.bit())
        return words.index(word)


def body_bytes(head: int) -> int:
    """Return the number of bytes behind a head."""
    return head >> 3 if head < 200 else 25 + head - 200


def chain(payload: bytes, count: int) -> list[int] | None:
    """Return the bytes at which blocks begin; None if they do not end where the payload ends."""
    starts, place = [], 0
    for _ in range(count):
        if place >= len(payload):
            return None
        starts.append(place)
        place += 1 + body_bytes(payload[place])
    return starts if place == len(payload) else None


def group(bits: Bits, kind: int, mask: int) -> list[int]:
    """Return the coefficients of a group of a class."""
    if kind == 7:
        return [byte - 256 * (byte > 127) for byte in (bits.number(8) for _ in range(4))]
    values = [0] * 4
    for i in range(4):
        if mask >> i & 1:
            sign = bits.bit()
            magnitude = bits.number(kind - 1) + 1
            values[i] = -magnitude if sign else magnitude
    return values


def classes(bits: Bits, column: int, before: tuple[int, int]) -> tuple[int, int]:
    """Return the classes of both groups of a column."""
    context = 6 if column == 0 else 5 if before[0] == 0 and before[1] else min(before[0], 4)
    symbol = bits.symbol(A_CODES[context])
    if symbol == 0:
        return 0, 0
    context = 6 if symbol == 1 else 5 if column == 0 else min(before[1], 4)
    return symbol - 1, bits.symbol(B_CODES[context])


def decode_block(block: bytes) -> list[int]:
    """Return the 64 coefficients of a head and its body, place ``8 * u + v``."""
    return read_block(block)[0]


def read_block(block: bytes) -> tuple[list[int], int, int]:
    """Return the coefficients, the category of DC, and the number of bits read behind that category."""
    assert len(block) == 1 + body_bytes(block[0])
    bits = Bits(block[1:])
    category = block[0] & 7 if block[0] < 200 else min(bits.number(4), 8)
    begin, dc = bits.place, 0
    if category:
        sign = bits.bit()
        magnitude = bits.number(category - 1) + 2 ** (category - 1)
        dc = max(-128, -magnitude) if sign else min(127, magnitude)
    values: list[int] = []
    now = classes(bits, 0, (0, 0))
    for column in range(8):
        masks = [bits.symbol(MASK_CODES[min(kind, 4) - 1]) + 1 if 0 < kind < 7 else 0 for kind in now]
        following = classes(bits, column + 1, now) if column < 7 else (0, 0)
        for kind, mask in zip(now, masks, strict=True):
            values += group(bits, kind, mask)
        now = following
    return [dc, *values[1:]], category, bits.place - begin


def decode(payload: bytes, count: int) -> list[list[int]]:
    """Return the blocks of a payload whose chain is right."""
    starts = chain(payload, count)
    assert starts is not None
    return [decode_block(payload[begin:end]) for begin, end in pairwise([*starts, len(payload)])]
