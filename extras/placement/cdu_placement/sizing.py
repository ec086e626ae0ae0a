"""Sizing of gates for their wires: the mapper chose their sizes without any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from cdu_synth.area.timing import Netlist, Path, Timing, Wires
from cdu_synth.library.liberty import Cell, Library

#: Greatest number of rounds, and of consecutive rounds without a gain.
_ROUNDS, _PATIENCE = 100, 5
#: Share of the slowest path's cells that a round makes larger; halved after each round without a gain.
_SHARE = 0.25


def resized(netlist: Netlist, library: Library, wires: Wires, notify: Callable[[], None] | None = None) -> Netlist:
    """Return the netlist with larger gates on its slowest paths, as long as that makes the paths faster.

    A round takes the cells of the slowest path with the highest load for their size, one size up each; if the clock gets no
    faster, they keep their size, and the next round takes fewer, and others. ``notify`` is called for every round.
    """
    larger = _larger(library)
    tried: set[tuple[int, str]] = set()
    timing = Timing(netlist, library, wires)
    path, idle = timing.slowest(), 0
    for _ in range(_ROUNDS):
        if path is None or idle == _PATIENCE:
            break
        count = max(1, round(_SHARE * path.cells) >> idle)
        chosen = _chosen(netlist, library, timing, path, larger, tried)[:count]
        if not chosen:
            break
        tried |= {(number, netlist.cells[number][0]) for number in chosen}
        cells = list(netlist.cells)
        for number in chosen:
            kind, pins = cells[number]
            cells[number] = larger[kind], pins
        attempt = replace(netlist, cells=tuple(cells))
        attempted = Timing(attempt, library, wires)
        slowest = attempted.slowest()
        if notify:
            notify()
        if slowest is not None and slowest.delay_ns < path.delay_ns - 1e-6:
            netlist, timing, path, idle = attempt, attempted, slowest, 0
        else:
            idle += 1
    return netlist


def _larger(library: Library) -> dict[str, str]:
    """Return for each cell the next larger one that computes the same at the same pins."""
    families: dict[tuple[object, ...], list[Cell]] = {}
    for cell in library.cells.values():
        if cell.usable and cell.area > 0 and not cell.clock_gate and not cell.macro:
            key = (cell.flip_flop, tuple(sorted(cell.functions.items())), tuple(sorted(cell.capacitances)))
            families.setdefault(key, []).append(cell)
    found: dict[str, str] = {}
    for family in families.values():
        family.sort(key=lambda cell: (cell.area, cell.name))
        found |= {small.name: large.name for small, large in pairwise(family)}
    return found


def _chosen(
    netlist: Netlist, library: Library, timing: Timing, path: Path, larger: dict[str, str], tried: set[tuple[int, str]]
) -> list[int]:
    """Return the cells of the path that have not been tried at this size, those with most load per input capacitance first."""
    efforts = []
    for number in path.steps:
        kind, pins = netlist.cells[number]
        if kind in larger and (number, kind) not in tried:
            cell = library.cells[kind]
            load = max(timing.load(pins[pin]) for pin in cell.functions if pin in pins)
            efforts.append((load / max(cell.capacitances.values()), number))
    efforts.sort(reverse=True)
    return [number for _, number in efforts]
