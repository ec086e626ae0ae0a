"""Quantisation tables (DQT) of the DCT coefficients, in the orientation ``[vertical frequency][horizontal frequency]``.

``optL`` and ``optH`` are the divisor tables of JPEG-ACT, found by the authors' optimisation for low error and for high
compression; ``optsL`` and ``optsH`` are their power-of-two forms, which is what a shift quantiser can do. ``imageQ``
(Q = 1..100) is the luminance table of ITU-T T.81 Annex K scaled to quality Q.
"""

from __future__ import annotations

import re
from math import log2

from cdu_spec.geometry import BLOCK_VALUES, SHIFT_BITS

Table = tuple[int, ...]


def _table(text: str) -> Table:
    values = tuple(int(word) for word in text.split())
    assert len(values) == BLOCK_VALUES
    return values


OPT_L = _table("""
    8 7 7 7 7 6 6 6   8 7 7 7 6 6 6 6   7 7 6 6 6 6 6 6   7 6 6 6 6 6 5 5
    7 6 6 6 6 6 5 5   7 6 6 6 6 6 5 5   7 6 6 6 6 5 5 5   6 6 6 6 5 5 5 5""")
OPT_H = _table("""
     8 26 25 25 24 24 23 22   26 24 24 23 22 22 21 20   26 24 24 23 22 21 20 20   25 23 23 22 21 21 20 19
    25 23 22 21 21 20 19 19   24 22 21 20 20 20 19 19   23 21 20 20 19 19 19 19   22 20 20 19 19 19 19 19""")
OPTS_L = (8,) * BLOCK_VALUES
OPTS_H = _table("""
     8 32 32 32 32 32 32 16   32 32 32 32 16 16 16 16   32 32 32 32 16 16 16 16   32 32 32 16 16 16 16 16
    32 32 16 16 16 16 16 16   32 16 16 16 16 16 16 16   32 16 16 16 16 16 16 16   16 16 16 16 16 16 16 16""")
#: ITU-T T.81 Annex K, Table K.1 (luminance).
T81_LUMINANCE = _table("""
    16 11 10 16 24 40 51 61      12 12 14 19 26 58 60 55      14 13 16 24 40 57 69 56      14 17 22 29 51 87 80 62
    18 22 37 56 68 109 103 77    24 35 55 64 81 104 113 92    49 64 78 87 103 121 120 101  72 92 95 98 112 100 103 99""")

#: Divisor tables by name (the image tables are made by :func:`divisors`).
NAMED = {"optL": OPT_L, "optH": OPT_H, "optsL": OPTS_L, "optsH": OPTS_H}
#: Power-of-two form of the published divisor tables, as published.
PUBLISHED_SHIFT_FORM = {"optL": "optsL", "optH": "optsH"}
#: The schedule optLH: optL before this epoch, optH from it on (5 in the paper, 10 in the published commands).
LH_SWITCH_EPOCH = 5

DQT_HELP = "optL, optH, optsL, optsH, or imageQ with Q from 1 to 100 (image80)"
MAX_SHIFT = (1 << SHIFT_BITS) - 1


def image_table(quality: int) -> Table:
    """Luminance table of a JPEG image of the given quality (1..100): divisors 1..255."""
    if not 1 <= quality <= 100:
        raise ValueError(f"image quality {quality} is not allowed: use 1 to 100")
    scale = 50 / quality if quality < 50 else 2 - quality / 50
    return tuple(min(max(int(entry * scale + 0.5), 1), 255) for entry in T81_LUMINANCE)


def divisors(name: str) -> Table:
    """The 64 divisors (1..255) of a table by name.

    Raises ValueError for an unknown name.
    """
    if name in NAMED:
        return NAMED[name]
    if match := re.fullmatch(r"image(\d{1,3})", name):
        return image_table(int(match[1]))
    raise ValueError(f"unknown quantisation table {name!r}: use {DQT_HELP}")


def shifts(name: str) -> Table:
    """The 64 shifts (0..7) with which a shift quantiser stands in for the named table.

    optL and optH use their published power-of-two forms; any other divisor d becomes the nearest power of two on a
    logarithmic scale, at most 128.
    """
    table = divisors(PUBLISHED_SHIFT_FORM.get(name, name))
    return tuple(min(round(log2(divisor)), MAX_SHIFT) for divisor in table)
