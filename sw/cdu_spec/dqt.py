"""Quantisation tables (DQT) of the DCT coefficients, in the orientation ``[vertical frequency][horizontal frequency]``.

``optL`` and ``optH`` are the divisor tables of JPEG-ACT, found by the authors' optimisation for low error and for high
compression; ``optsL`` and ``optsH`` are their power-of-two forms, for shift quantisers. ``searchsH`` was
searched by ``cdu dqt`` for shifts and ZVC: bytes near those of optsH, less error at equal bytes. ``imageQ`` (Q = 1..100) is the
luminance table of ITU-T T.81 Annex K scaled to quality Q. ``uniform-N`` divides all coefficients by N, DC by 8 at least: an
entropy coder makes fewer bytes of that, at equal error, than of tables found for ZVC. A table of one's own is 64 divisors, as
``cdu dqt`` finds them; :mod:`cdu_spec.dqt_file` reads and writes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import log2

from cdu_tools.near_names import unknown
from cdu_tools.numbers import is_whole

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
#: Found by `cdu dqt --input build/cifar.npz --kind shift --rate zvc --alpha 0.014`; docs/methods/dqt.md describes the
#: recording of that file, and the results of the table.
SEARCHS_H = _table("""
     8 16 16 16 32 32 32 32   16 16 16 32 32 32 32 32   16 16 32 32 32 32 32 32   16 32 32 32 32 32 32 32
    16 32 32 32 32 32 32 32   16 32 32 32 32 32 32 32   32 32 32 32 32 32 32 32   32 32 32 32 32 32 32 32""")
#: ITU-T T.81 Annex K, Table K.1 (luminance).
T81_LUMINANCE = _table("""
    16 11 10 16 24 40 51 61      12 12 14 19 26 58 60 55      14 13 16 24 40 57 69 56      14 17 22 29 51 87 80 62
    18 22 37 56 68 109 103 77    24 35 55 64 81 104 113 92    49 64 78 87 103 121 120 101  72 92 95 98 112 100 103 99""")

#: Divisor tables by name (the image tables are made by :func:`divisors`).
NAMED = {"optL": OPT_L, "optH": OPT_H, "optsL": OPTS_L, "optsH": OPTS_H, "searchsH": SEARCHS_H}
#: Power-of-two form of the published divisor tables, as published.
PUBLISHED_SHIFT_FORM = {"optL": "optsL", "optH": "optsH"}
#: The schedule optLH: optL before this epoch, optH from it on (5 in the paper, 10 in the published commands).
LH_SWITCH_EPOCH = 5

MAX_DIVISOR = 255
#: Shifts of a table. With the least shift no coefficient of 8-bit samples loses more than rounding does: DC
#: reaches 8 * 128. With a smaller one every coefficient may saturate in int8, as each of them reaches 837 or more.
LEAST_SHIFT, MAX_SHIFT = 3, (1 << SHIFT_BITS) - 1
#: The DC entry of every table found by optimisation: batch normalisation depends on it (section "DQT optimisation").
DC_DIVISOR = 1 << LEAST_SHIFT
_POWERS = tuple(1 << shift for shift in range(MAX_SHIFT + 1))
DQT_HELP = (
    "optL, optH, optsL, optsH, searchsH, imageQ with Q from 1 to 100 (image80), uniform-N with N from 1 to 255 (uniform-16), "
    "or a .json file that cdu dqt wrote"
)
_UNIFORM = re.compile(r"uniform-(\d{1,3})")


def image_table(quality: int) -> Table:
    """Return the luminance table of a JPEG image of the given quality (1..100): divisors 1..255."""
    if not 1 <= quality <= 100:
        raise ValueError(f"image quality {quality} is not allowed: use 1 to 100")
    scale = 50 / quality if quality < 50 else 2 - quality / 50
    return tuple(min(max(int(entry * scale + 0.5), 1), MAX_DIVISOR) for entry in T81_LUMINANCE)


def uniform_table(step: int) -> Table:
    """Return the table that divides all coefficients by ``step`` (1..255), and DC by no less than :data:`DC_DIVISOR`."""
    if not 1 <= step <= MAX_DIVISOR:
        raise ValueError(f"uniform step {step} is not allowed: use 1 to {MAX_DIVISOR}")
    return (max(step, DC_DIVISOR), *(step,) * (BLOCK_VALUES - 1))


def divisors(which: str | Sequence[int]) -> Table:
    """Return the 64 divisors (1..255) of a table by name; 64 integers, row after row, are a table themselves.

    Raises ValueError for an unknown name, and for anything but 64 integers from 1 to 255.
    """
    if not isinstance(which, str):
        return _checked(which)
    if which in NAMED:
        return NAMED[which]
    if match := re.fullmatch(r"image(\d{1,3})", which):
        return image_table(int(match[1]))
    if match := _UNIFORM.fullmatch(which):
        return uniform_table(int(match[1]))
    raise ValueError(unknown("quantisation table", which, NAMED, f"use {DQT_HELP}"))


def shifts(which: str | Sequence[int]) -> Table:
    """Return the 64 shifts (3..7) of a shift quantiser for a table, given as for :func:`divisors`.

    optL and optH use their published power-of-two forms; any other divisor d becomes the nearest power of two on a
    logarithmic scale, at least 8 and at most 128. Below 8 coefficients would saturate, which makes bytes and errors greater
    instead of smaller: uniform-1, uniform-2 and uniform-4 are uniform-8. ValueError as for :func:`divisors`, and for a uniform
    table that is no power of two, because its name states the step.
    """
    if isinstance(which, str) and (match := _UNIFORM.fullmatch(which)) and int(match[1]) not in _POWERS:
        raise ValueError(f"{which} is not exact in shifts: use uniform-N with N of {', '.join(map(str, _POWERS))}")
    return _nearest_shifts(divisors(PUBLISHED_SHIFT_FORM.get(which, which) if isinstance(which, str) else which))


@lru_cache
def _nearest_shifts(table: Table) -> Table:
    """Return the shifts of divisors, kept since codecs ask for them with every tensor."""
    return tuple(min(max(round(log2(divisor)), LEAST_SHIFT), MAX_SHIFT) for divisor in table)


def _checked(values: Sequence[int]) -> Table:
    """64 divisors; ValueError for anything else."""
    if not isinstance(values, Sequence):
        raise ValueError(f"unknown quantisation table {values!r}: use {DQT_HELP}")
    needed = f"a quantisation table has {BLOCK_VALUES} integers from 1 to {MAX_DIVISOR}, row after row"
    if len(values) != BLOCK_VALUES:
        raise ValueError(f"{needed}: these are {len(values)}")
    for place, value in enumerate(values):
        if not is_whole(value, 1, MAX_DIVISOR):
            raise ValueError(f"{needed}: entry {place} is {value!r}")
    return tuple(values)
