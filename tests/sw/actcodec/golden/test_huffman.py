"""Huffman tables: the standard's own examples, libjpeg's, and an exhaustive search for the best lengths."""

from functools import cache

import numpy as np
import pytest
from actcodec.golden.huffman import code_lengths, lookup, optimal_table
from cdu_spec.huffman import AC_SYMBOLS, DC_SYMBOLS, STANDARD, HuffmanTable, HuffmanTables
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_jpeg import codes_of, libjpeg_file, noise, read_file


def text(table, symbol):
    code, length = table.codes[symbol]
    return f"{code:0{length}b}"


@pytest.mark.parametrize(
    ("symbol", "code"),
    [
        (0x00, "1010"),
        (0x01, "00"),
        (0x0A, "1111111110000011"),
        (0x11, "1100"),
        (0x7A, "1111111110110101"),
        (0xE1, "1111111111101011"),
        (0xF0, "11111111001"),
        (0xFA, "1111111111111110"),
    ],
)
def test_codes_of_table_k5(symbol, code):
    assert text(STANDARD.ac, symbol) == code


@pytest.mark.parametrize(("category", "code"), [(0, "00"), (1, "010"), (5, "110"), (6, "1110"), (11, "111111110")])
def test_codes_of_table_k3(category, code):
    assert text(STANDARD.dc, category) == code


def test_standard_tables_are_libjpegs_and_complete():
    file = read_file(libjpeg_file(noise()))
    assert (STANDARD.dc.counts, STANDARD.dc.symbols) == file.dc
    assert (STANDARD.ac.counts, STANDARD.ac.symbols) == file.ac
    assert set(STANDARD.dc.symbols) == DC_SYMBOLS
    assert set(STANDARD.ac.symbols) == AC_SYMBOLS


def test_lookup_finds_the_code_that_a_pattern_begins_with():
    for table in (STANDARD.dc, STANDARD.ac, optimal_table([5, 0, 1, 1, 0, 9])):
        symbols, lengths = lookup(table)
        codes = codes_of(table.counts, table.symbols)
        for pattern in (*range(0, 1 << 16, 37), 0xFFFF):
            found = [
                (length, codes[length, pattern >> (16 - length)])
                for length in range(1, 17)
                if (length, pattern >> (16 - length)) in codes
            ]
            assert found == ([(lengths[pattern], symbols[pattern])] if lengths[pattern] else [])


def least_bits(frequencies, deepest=16):
    """Return the fewest bits over all trees that are not deeper, level by level."""
    counts = sorted(frequencies, reverse=True)

    @cache
    def best(level, placed, nodes):
        if placed == len(counts):
            return 0
        if level > deepest:
            return float("inf")
        costs = []
        for leaves in range(min(nodes, len(counts) - placed) + 1):
            below = min(2 * (nodes - leaves), len(counts))
            costs.append(level * sum(counts[placed : placed + leaves]) + best(level + 1, placed + leaves, below))
        return min(costs)

    return best(1, 0, 2)


def check_optimal(frequencies):
    table = optimal_table(frequencies)
    assert sorted(table.symbols) == [symbol for symbol, count in enumerate(frequencies) if count]
    longest = max(length for _, length in table.codes.values())
    assert longest <= 16
    assert all(f"{code:0{length}b}" != "1" * length for code, length in table.codes.values())
    # Besides the symbols that occur there is the leaf that T.81 forbids.
    bits = sum(frequencies[symbol] * length for symbol, (_, length) in table.codes.items())
    assert bits == least_bits([*filter(None, frequencies), 0])
    assert len(codes_of(table.counts, table.symbols)) == len(table.symbols)


@settings(max_examples=60)
@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 10**9)), min_size=1, max_size=20).filter(any))
def test_optimal_tables_cannot_be_beaten(frequencies):
    check_optimal(frequencies)


@settings(max_examples=60)
@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 10**9)), min_size=2, max_size=16), st.integers(4, 8))
def test_lengths_with_a_limit_cannot_be_beaten(frequencies, longest):
    lengths = code_lengths(np.array(frequencies), longest).tolist()
    assert max(lengths) <= longest
    assert sum(2**-length for length in lengths) == 1
    assert sum(count * length for count, length in zip(frequencies, lengths, strict=True)) == least_bits(frequencies, longest)


@pytest.mark.parametrize("count", [1, 2, 16, 17, 18, 25, 40])
def test_optimal_tables_where_sixteen_bits_are_a_limit(count):
    """Check Fibonacci numbers, which make Huffman's own tree as deep as possible."""
    frequencies = [1, 1]
    while len(frequencies) < count:
        frequencies.append(frequencies[-1] + frequencies[-2])
    check_optimal(frequencies[:count])


def test_optimal_table_of_all_symbols():
    table = optimal_table([1] * 256)
    lengths = sorted(length for _, length in table.codes.values())
    assert lengths == [8] * 255 + [9]


@pytest.mark.parametrize(
    ("counts", "symbols", "message"),
    [
        ((0,) * 16, (), "at least one"),
        ((1,) * 15, (0,) * 15, "16 counts"),
        ((0, 2, *[0] * 14), (1,), "as many symbols"),
        ((0, 2, *[0] * 14), (1, 1), "twice"),
        ((2, *[0] * 15), (0, 1), "of ones only"),
        ((0, 4, *[0] * 14), (0, 1, 2, 3), "of ones only"),
        ((1, 3, *[0] * 14), (0, 1, 2, 3), "more codes"),
    ],
)
def test_what_is_no_table(counts, symbols, message):
    with pytest.raises(ValueError, match=message):
        HuffmanTable(counts, symbols)


@pytest.mark.parametrize(("dc", "ac"), [(12, 0), (0, 0x0B), (0, 0x10), (0, 0xE0)])
def test_symbols_that_baseline_does_not_know(dc, ac):
    one = (1, *[0] * 15)
    with pytest.raises(ValueError, match="baseline"):
        HuffmanTables(HuffmanTable(one, (dc,)), HuffmanTable(one, (ac,)))
