"""Wires of a placed netlist: trees along rows and columns, their capacitance, and the delay of a signal along them.

Every net is a minimum spanning tree of its ends in Manhattan distance that begins at its driver; the Steiner tree of a router
is about a tenth shorter. Delays are Elmore's. Clocks are ideal and have no wires.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from cdu_synth.area.timing import PORT, Net, Netlist, Wires
from cdu_synth.library.liberty import Library

from cdu_placement.placer import Placement, clock_nets
from cdu_placement.rows import CellRows, femtofarad

#: Nanoseconds of an ohm times a femtofarad.
_NS = 1e-6


@dataclass(frozen=True)
class Tree:
    """Wires of a net: its ends (cells or :data:`PORT`, the driver first), and for each end its wire to the end before it."""

    ends: tuple[int, ...]
    lengths: tuple[float, ...]
    before: tuple[int, ...]


@dataclass(frozen=True)
class Routed:
    """Wires for the timing, their trees, and their total length."""

    wires: Wires
    trees: dict[Net, Tree]

    @property
    def length_um(self) -> float:
        """Return the total length of all nets."""
        return sum(sum(tree.lengths) for tree in self.trees.values())


def wires_of(netlist: Netlist, library: Library, rows: CellRows, placement: Placement) -> Routed:
    """Return the wires of a placed netlist, in the units of its library."""
    assert rows.ohm_per_um is not None
    assert rows.ff_per_um is not None
    unit = femtofarad(library)
    drivers, sinks = _ends(netlist, library)
    capacitances: dict[Net, float] = {}
    delays: dict[tuple[Net, int], float] = {}
    trees: dict[Net, Tree] = {}
    clocks = clock_nets(netlist, library)
    for net, at in sinks.items():
        if net in clocks or net not in drivers:
            continue
        driver = drivers[net]
        places = [_place(end, net, placement) for end in (driver, *at)]
        loads = [0.0, *(unit * _load(netlist, library, end, net) for end in at)]
        lengths, before = spanning_tree(places)
        trees[net] = Tree((driver, *at), tuple(lengths), tuple(before))
        capacitances[net] = sum(lengths) * rows.ff_per_um / unit
        ns = [_NS * one / library.time_ns for one in elmore(lengths, before, loads, rows.ohm_per_um, rows.ff_per_um)]
        delays |= {(net, end): delay for end, delay in zip(at, ns[1:], strict=True)}
    return Routed(Wires(capacitances, delays), trees)


def spanning_tree(places: Sequence[tuple[float, float]]) -> tuple[list[float], list[int]]:
    """Return Prim's tree from the first place: for each place the length of its wire, and the place that the wire leads to.

    The first place has a wire of length 0 to itself.
    """
    points: npt.NDArray[np.float64] = np.asarray(places, dtype=np.float64)
    count = len(points)
    lengths, before = [0.0] * count, [0] * count
    nearest = np.abs(points - points[0]).sum(axis=1)
    link = np.zeros(count, np.int64)
    left = np.ones(count, bool)
    left[0] = False
    for _ in range(count - 1):
        place = int(np.where(left, nearest, np.inf).argmin())
        lengths[place], before[place], left[place] = float(nearest[place]), int(link[place]), False
        away = np.abs(points - points[place]).sum(axis=1)
        closer = left & (away < nearest)
        nearest[closer], link[closer] = away[closer], place
    return lengths, before


def elmore(
    lengths: Sequence[float], before: Sequence[int], loads: Sequence[float], ohm_per_um: float, ff_per_um: float
) -> list[float]:
    """Return Elmore's delay (ohm times fF) from a tree's first place to each; a wire's capacitance is split to its ends."""
    count = len(lengths)
    order, depth = list(range(1, count)), [0] * count
    for place in range(1, count):
        here = place
        while here:
            depth[place] += 1
            here = before[here]
    order.sort(key=lambda place: depth[place])
    behind = [load + ff_per_um * length / 2 for load, length in zip(loads, lengths, strict=True)]
    for place in reversed(order):
        behind[before[place]] += behind[place] + ff_per_um * lengths[place] / 2
    delays = [0.0] * count
    for place in order:
        delays[place] = delays[before[place]] + ohm_per_um * lengths[place] * behind[place]
    return delays


def _ends(netlist: Netlist, library: Library) -> tuple[dict[Net, int], dict[Net, list[int]]]:
    """Return the driver and the sinks of every net: numbers of cells, or :data:`PORT`."""
    drivers: dict[Net, int] = {net: PORT for net in netlist.inputs if isinstance(net, int)}
    sinks: defaultdict[Net, list[int]] = defaultdict(list)
    for number, (kind, pins) in enumerate(netlist.cells):
        cell = library.cells[kind]
        for pin, net in pins.items():
            if isinstance(net, int):
                if pin in cell.capacitances:
                    if number not in sinks[net][-1:]:
                        sinks[net].append(number)
                else:
                    drivers[net] = number
    for net in netlist.outputs:
        if isinstance(net, int) and drivers.get(net, PORT) != PORT and PORT not in sinks[net]:
            sinks[net].append(PORT)
    return drivers, sinks


def _place(end: int, net: Net, placement: Placement) -> tuple[float, float]:
    return placement.ports_um[net] if end == PORT else placement.centres_um[end]


def _load(netlist: Netlist, library: Library, end: int, net: Net) -> float:
    """Return the capacitance of the pins of a cell at a net, in units of the library."""
    if end == PORT:
        return 0.0
    capacitances = library.cells[netlist.cells[end][0]].capacitances
    return sum(capacitances[pin] for pin in pins_at(netlist, library, end, net))


def pins_at(netlist: Netlist, library: Library, end: int, net: Net) -> list[str]:
    """Return the inputs of a cell at a net; an empty name for a port."""
    if end == PORT:
        return [""]
    kind, pins = netlist.cells[end]
    return [pin for pin in library.cells[kind].capacitances if pins.get(pin) == net]


def driving_pin(netlist: Netlist, library: Library, end: int, net: Net) -> list[str]:
    """Return the output of a cell at a net; an empty name for a port."""
    if end == PORT:
        return [""]
    kind, pins = netlist.cells[end]
    return [pin for pin, other in pins.items() if other == net and pin not in library.cells[kind].capacitances]
