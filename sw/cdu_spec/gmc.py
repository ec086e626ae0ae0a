"""GMC, the group-mask code of blocks of quantised DCT coefficients: classes, code words, contexts, lengths.

A block is a head byte and a body. The head tells the body's length L and, of a short block, the category of DC:
``L << 3 | c`` up to 24 bytes, ``200 + L - 25`` from 25 bytes on, with c in the first 4 bits of the body. A body is
the low bits of DC, then column after column (one horizontal frequency, 8 coefficients) as two groups of four: A, vertical
frequencies 0 to 3, and B, 4 to 7. `docs/reference/bitstream.md` section 3 has the order of the bits.

Every table is complete: any bit string is a chain of code words. They come from the activations of two networks, a ResNet and a
VGG.
"""

from __future__ import annotations

from cdu_spec.geometry import BLOCK_SIDE, VALUE_BITS

#: Code words by row (a context, or a class) and symbol; the first character is the first bit.
Codes = tuple[tuple[str, ...], ...]

#: Coefficients of a group.
GROUP_VALUES = 4
#: The class of a group whose coefficients are all zero, and the class of one whose coefficients are stored as bytes.
ZERO_CLASS, RAW_CLASS = 0, 7
#: Classes between them: largest magnitude up to ``2**(t - 1)``, in fields of a sign and t - 1 bits.
CODED_CLASSES = range(1, 7)
#: Classes from this one on share the code words of masks.
LAST_MASK_CLASS = 4

#: Symbols of A. A class t that is not zero has symbol t + 1.
A_BOTH_ZERO, A_ZERO = 0, 1
#: Contexts of a column's symbols that do not follow from a class before: A of the first column; A after a column of which
#: only A was zero; B beside an A that is zero; B of the first column. Else the context is the class of the same group in the
#: column before, at most LAST_CLASS_CONTEXT.
A_FIRST, A_AFTER_ZERO = 6, 5
B_BESIDE_ZERO, B_FIRST = 6, 5
LAST_CLASS_CONTEXT = 4

#: By context and symbol.
A_CODES: Codes = (
    ("0", "11010", "10", "1100", "11011", "11100", "11101", "11110", "11111"),
    ("000", "0100", "1", "001", "0101", "01100", "01101", "01110", "01111"),
    ("0000", "00100", "1", "010", "011", "0001", "00101", "00110", "00111"),
    ("0000", "00100", "10", "11", "01", "0001", "00101", "00110", "00111"),
    ("00000", "00001", "010", "011", "10", "11", "001", "00010", "00011"),
    ("00", "100", "01", "101", "1100", "11110", "11111", "1101", "1110"),
    ("000", "11110", "001", "100", "101", "01", "110", "1110", "11111"),
)
#: By context and class.
B_CODES: Codes = (
    ("0", "10", "1100", "11100", "11101", "11110", "11111", "1101"),
    ("10", "0", "1100", "1101", "11100", "11101", "11110", "11111"),
    ("100", "0", "101", "110", "11100", "11101", "11110", "11111"),
    ("1100", "00", "01", "10", "1101", "11110", "11111", "1110"),
    ("11100", "110", "00", "01", "10", "11101", "11110", "11111"),
    ("00", "01", "100", "101", "110", "1110", "11110", "11111"),
    ("11100", "0", "10", "1100", "11101", "11110", "11111", "1101"),
)
#: By class - 1 and mask - 1; bit i of a mask is 1 where coefficient i of the group is not zero.
MASK_CODES: Codes = (
    (
        "00",
        "010",
        "011",
        "1000",
        "1001",
        "1010",
        "11000",
        "1011",
        "11001",
        "11010",
        "11011",
        "11100",
        "11101",
        "11110",
        "11111",
    ),
    ("000", "11100", "001", "111110", "1000", "1001", "010", "111111", "11101", "1010", "1011", "11110", "1100", "1101", "011"),
    (
        "1000",
        "11010",
        "1001",
        "111110",
        "1010",
        "11011",
        "010",
        "111111",
        "11100",
        "11101",
        "1011",
        "11110",
        "1100",
        "011",
        "00",
    ),
    (
        "111010",
        "111011",
        "11000",
        "111100",
        "11001",
        "11010",
        "1010",
        "111101",
        "111110",
        "11011",
        "1011",
        "111111",
        "11100",
        "100",
        "0",
    ),
)

#: Longest body whose head has the category of DC, and the first head of longer ones.
SHORT_BYTES = 24
LONG_HEAD = 200
#: Bits of the category in a long body; larger numbers than MAX_CATEGORY are read as that.
CATEGORY_BITS, MAX_CATEGORY = 4, 8
#: The longest body that a head can express.
MAX_BODY_BYTES = SHORT_BYTES + 256 - LONG_HEAD
_WORST_COLUMN_BITS = len(A_CODES[A_FIRST][RAW_CLASS + 1]) + len(B_CODES[B_FIRST][RAW_CLASS]) + BLOCK_SIDE * VALUE_BITS
#: The longest body that an encoder writes: DC is -128, and all groups are stored as bytes.
MAX_WRITTEN_BODY_BYTES = -(-(CATEGORY_BITS + MAX_CATEGORY + BLOCK_SIDE * _WORST_COLUMN_BITS) // 8)
#: Bytes of a block, head included: of the shortest, of the longest that an encoder writes, of the longest that a head can
#: express.
MIN_BLOCK_BYTES, MAX_WRITTEN_BLOCK_BYTES, MAX_BLOCK_BYTES = 1, 1 + MAX_WRITTEN_BODY_BYTES, 1 + MAX_BODY_BYTES


def block_bytes(head: int) -> int:
    """Return the bytes of the block that begins with a head, 1 to 81."""
    return 1 + (head >> 3 if head < LONG_HEAD else SHORT_BYTES + 1 + head - LONG_HEAD)


def number(word: str) -> int:
    """Return a code word as a number, first bit lowest."""
    return sum(int(bit) << place for place, bit in enumerate(word))


def longest(codes: Codes) -> int:
    """Return the bits of the longest code word."""
    return max(len(word) for row in codes for word in row)


def lookup(row: tuple[str, ...], bits: int) -> list[tuple[int, int]]:
    """Return the symbol and the length of the code word that begins each number of ``bits`` bits, first bit lowest."""
    table = [(0, 0)] * (1 << bits)
    for symbol, word in enumerate(row):
        for rest in range(1 << bits - len(word)):
            table[number(word) | rest << len(word)] = (symbol, len(word))
    return table
