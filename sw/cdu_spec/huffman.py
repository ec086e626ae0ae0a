"""Huffman tables of baseline JPEG: the standard ones (ITU-T T.81, Annex K.3), and the codes of any (Annex C)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cdu_spec.jpeg import EOB, MAX_AC_SIZE, MAX_DC_SIZE, ZRL

#: Longest code in bits.
MAX_CODE_BITS = 16
#: Symbols that a table may hold.
DC_SYMBOLS = frozenset(range(MAX_DC_SIZE + 1))
AC_SYMBOLS = frozenset({EOB, ZRL} | {run << 4 | size for run in range(16) for size in range(1, MAX_AC_SIZE + 1)})


@dataclass(frozen=True)
class HuffmanTable:
    """One table as a DHT segment gives it; every instance is valid (ValueError otherwise).

    Parameters
    ----------
    counts
        Number of codes of 1 to 16 bits (T.81: BITS).
    symbols
        Distinct bytes in order of their codes (T.81: HUFFVAL), at least one.
    """

    counts: tuple[int, ...]
    symbols: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.counts) != MAX_CODE_BITS or not 1 <= len(self.symbols) == sum(self.counts):
            raise ValueError("a Huffman table needs 16 counts of codes, and as many symbols as they say, at least one")
        if len(set(self.symbols)) != len(self.symbols):
            raise ValueError("a symbol stands twice in a Huffman table")
        if any(code + 1 >= 1 << length for code, length in self.codes.values()):
            raise ValueError("a Huffman table has more codes than its lengths allow, or one of ones only")

    @cached_property
    def codes(self) -> dict[int, tuple[int, int]]:
        """Code and its length in bits of each symbol (T.81, Annex C)."""
        found, code, rest = {}, 0, iter(self.symbols)
        for length, count in enumerate(self.counts, 1):
            for _ in range(count):
                found[next(rest)] = (code, length)
                code += 1
            code <<= 1
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of counts and symbols."""
        return len(self.counts) + len(self.symbols)

    def pack(self) -> bytes:
        """Counts, then symbols, one byte each."""
        return bytes(self.counts) + bytes(self.symbols)


@dataclass(frozen=True)
class HuffmanTables:
    """The tables of a grayscale scan: DC categories, and run and size of AC coefficients (ValueError for other symbols)."""

    dc: HuffmanTable
    ac: HuffmanTable

    def __post_init__(self) -> None:
        if not (DC_SYMBOLS.issuperset(self.dc.symbols) and AC_SYMBOLS.issuperset(self.ac.symbols)):
            raise ValueError("a Huffman table has a symbol that baseline JPEG does not know")


#: T.81, tables K.3 and K.5 (luminance).
STANDARD = HuffmanTables(
    HuffmanTable((0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0), tuple(range(12))),
    HuffmanTable(
        (0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125),
        tuple(
            bytes.fromhex("""
            01 02 03 00 04 11 05 12 21 31 41 06 13 51 61 07 22 71 14 32 81 91 a1 08 23 42 b1 c1 15 52 d1 f0
            24 33 62 72 82 09 0a 16 17 18 19 1a 25 26 27 28 29 2a 34 35 36 37 38 39 3a 43 44 45 46 47 48 49
            4a 53 54 55 56 57 58 59 5a 63 64 65 66 67 68 69 6a 73 74 75 76 77 78 79 7a 83 84 85 86 87 88 89
            8a 92 93 94 95 96 97 98 99 9a a2 a3 a4 a5 a6 a7 a8 a9 aa b2 b3 b4 b5 b6 b7 b8 b9 ba c2 c3 c4 c5
            c6 c7 c8 c9 ca d2 d3 d4 d5 d6 d7 d8 d9 da e1 e2 e3 e4 e5 e6 e7 e8 e9 ea f1 f2 f3 f4 f5 f6 f7 f8
            f9 fa""")
        ),
    ),
)
