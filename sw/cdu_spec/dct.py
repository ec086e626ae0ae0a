"""The 8-point DCT in integers, after Loeffler, Ligtenberg and Moschytz (LLM, ICASSP 1989).

Every cosine becomes one integer, ``round(sqrt(2) * cos(k * pi / 16) * 2**const_bits)``. The rotations of the LLM graph use
sums and differences of these integers, so that without rounding inside a pass the graph *is* the integer matrix of
:func:`basis`, entry for entry. Software applies the matrix, hardware follows a graph; both give the same integers.

One pass delivers ``sqrt(8) * 2**const_bits`` times the orthonormal transform. The forward transform takes rows first, then
columns; the inverse takes columns first, then rows. After the first pass :func:`pass_shifts` keeps ``pass1_bits`` fraction
bits, after the second none; both shifts round half up (add half, arithmetic shift right).
"""

from __future__ import annotations

from math import cos, pi, sqrt
from typing import NamedTuple

#: Points of the transform.
POINTS = 8
#: log2 of the gain ``sqrt(8) * sqrt(8)`` of two passes.
GAIN_BITS = 3


class Precision(NamedTuple):
    """Fraction bits of the constants, 8..13, and those kept after the first pass, 0..4."""

    const_bits: int
    pass1_bits: int


#: Precision within the limits of IEEE 1180-1990, which JPEG and its relatives require.
IEEE1180 = Precision(12, 2)
#: The fewest bits with an error small beside that of a shift table, so that training is not affected.
LEAST = Precision(8, 0)
#: Precisions by name.
PRECISIONS = {"least": LEAST, "ieee1180": IEEE1180}


def constant(sixteenths: int, const_bits: int) -> int:
    """Return ``sqrt(2) * cos(sixteenths * pi / 16)`` as an integer with ``const_bits`` fraction bits, rounded to nearest."""
    return round(sqrt(2.0) * cos(sixteenths * pi / 16) * (1 << const_bits))


def basis(const_bits: int) -> tuple[tuple[int, ...], ...]:
    """Return the integer matrix of one forward pass, ``[frequency][sample]``; its transpose is that of one inverse pass.

    Row 0 (the mean) is ``2**const_bits`` throughout; row k holds ``constant((2 * sample + 1) * k)``.
    """
    mean = (1 << const_bits,) * POINTS
    waves = (
        tuple(constant((2 * sample + 1) * frequency, const_bits) for sample in range(POINTS)) for frequency in range(1, POINTS)
    )
    return (mean, *waves)


def pass_shifts(const_bits: int, pass1_bits: int) -> tuple[int, int]:
    """Return the right shifts, each rounding half up, after the first and after the second pass (either direction)."""
    return const_bits - pass1_bits, const_bits + pass1_bits + GAIN_BITS
