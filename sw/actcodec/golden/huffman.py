"""Optimal Huffman tables of baseline JPEG for given symbols, and decoding by lookup of bit patterns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from cdu_spec.huffman import MAX_CODE_BITS, HuffmanTable


def lookup(table: HuffmanTable) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return symbol and length of the code at the begin of every pattern of 16 bits, (65536,) each; length 0 for no code."""
    symbols = np.zeros(1 << MAX_CODE_BITS, dtype=np.uint8)
    lengths = np.zeros(1 << MAX_CODE_BITS, dtype=np.uint8)
    for symbol, (code, length) in table.codes.items():
        free = MAX_CODE_BITS - length
        symbols[code << free : (code + 1) << free] = symbol
        lengths[code << free : (code + 1) << free] = length
    return symbols, lengths


def code_lengths(frequencies: npt.NDArray[np.int64], longest: int) -> npt.NDArray[np.int64]:
    """Return the lengths of the code words, (n,), that make the fewest bits of n symbols with these frequencies.

    No word is longer than ``longest`` bits, of which there must be enough for n words; n is 2 or more. The code is complete:
    the sum of ``2**-length`` is 1. The algorithm is package-merge (Larmore and Hirschberg 1990).
    """
    ranks = np.argsort(frequencies, kind="stable")
    leaves, members = frequencies[ranks], np.eye(len(frequencies), dtype=np.int64)
    weights, packages = leaves, members
    for _ in range(longest - 1):
        paired = len(weights) // 2 * 2
        weights = np.concatenate((leaves, weights[0:paired:2] + weights[1:paired:2]))
        packages = np.concatenate((members, packages[0:paired:2] + packages[1:paired:2]))
        order = np.argsort(weights, kind="stable")
        weights, packages = weights[order], packages[order]
    lengths = np.empty(len(leaves), dtype=np.int64)
    lengths[ranks] = packages[: 2 * len(leaves) - 2].sum(axis=0)
    return lengths


def optimal_table(frequencies: Sequence[int]) -> HuffmanTable:
    """Return the table that makes the fewest bits of symbols with these frequencies, with codes of at most 16 bits.

    ``frequencies[s]`` belongs to symbol s; at least one is positive. Symbols that do not occur have no code. T.81's K.2
    shortens too long codes by a heuristic; here they are optimal. A reserved symbol that never occurs gets the longest code,
    which is the code of ones only that T.81 forbids.
    """
    counts = np.asarray(frequencies, dtype=np.int64)
    used = np.flatnonzero(counts)
    order = used[np.argsort(counts[used], kind="stable")]
    lengths = code_lengths(np.concatenate(([0], counts[order])), MAX_CODE_BITS)
    per_length = np.bincount(lengths, minlength=MAX_CODE_BITS + 1)
    per_length[lengths[0]] -= 1
    by_length = np.lexsort((order, lengths[1:]))
    return HuffmanTable(tuple(map(int, per_length[1:])), tuple(map(int, order[by_length])))
