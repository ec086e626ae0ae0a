"""Legalisation of grown or inserted cells of a placed netlist with as little movement as possible.

A placer started anew from such a placement moves cells by tens of um, and the slowest path loses its gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from cdu_tools.errors import UserError

from cdu_placement.placer import Placement
from cdu_placement.rows import CellRows


def settled(placement: Placement, sites: Sequence[int], rows: CellRows) -> Placement:
    """Return a placement of cells of ``sites`` sites in rows, on whole sites, without overlaps.

    Every cell goes to the nearest row, from full rows to the nearest one with room, and is moved along the row only as far as
    its neighbours require. Raises UserError if the cells do not fit the die.
    """
    count, width = round(placement.height_um / rows.height_um), round(placement.width_um / rows.site_um)
    if sum(sites) > 0.99 * count * width:
        raise UserError(f"cells of {sum(sites)} sites do not fit {count * width}: use a lower --use")
    lines: list[list[int]] = [[] for _ in range(count)]
    free = [width] * count
    # Cells whose middle is in a row stay in it, if it has room: large ones before small ones.
    wanted = [min(count - 1, max(0, int(y / rows.height_um))) for _, y in placement.centres_um]
    for cell in sorted(range(len(sites)), key=lambda cell: (-sites[cell], cell)):
        line = min(
            (line for line in range(count) if free[line] >= sites[cell]), key=lambda line: (abs(line - wanted[cell]), line)
        )
        lines[line].append(cell)
        free[line] -= sites[cell]
    centres = list(placement.centres_um)
    for line, cells in enumerate(lines):
        cells.sort(key=lambda cell: (placement.centres_um[cell][0], cell))
        lefts = [round(placement.centres_um[cell][0] / rows.site_um - sites[cell] / 2) for cell in cells]
        for cell, left in zip(cells, _apart(lefts, [sites[cell] for cell in cells], width), strict=True):
            centres[cell] = (left + sites[cell] / 2) * rows.site_um, (line + 0.5) * rows.height_um
    return replace(placement, widths_um=tuple(one * rows.site_um for one in sites), centres_um=tuple(centres))


def _apart(lefts: Sequence[int], sizes: Sequence[int], width: int) -> list[int]:
    """Return left ends of disjoint intervals in their order within the width: halfway between pushing left and right."""
    low, place = [], 0
    for left, size in zip(lefts, sizes, strict=True):
        place = max(place, left)
        low.append(place)
        place += size
    place = width
    pulled = []
    for left, size in zip(reversed(lefts), reversed(sizes), strict=True):
        place = min(place - size, left)
        pulled.append(place)
    high = pulled[::-1]
    # Pushed to the right they may leave the row there, to the left here: the mean of both, mended at the ends.
    found = [(one + other) // 2 for one, other in zip(low, high, strict=True)]
    place = 0
    for at, size in enumerate(sizes):
        found[at] = place = max(place, found[at])
        place += size
    place = width
    for at in reversed(range(len(sizes))):
        found[at] = place = min(place - sizes[at], found[at])
    assert all(one + size <= other for (one, other), size in zip(pairwise(found), sizes, strict=False))
    return found
