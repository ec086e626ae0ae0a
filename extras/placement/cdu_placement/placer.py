"""Placement of a netlist's cells by Coloquinte, in rows of a square die."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cdu_synth.area.timing import Net, Netlist
from cdu_synth.library.liberty import Library
from cdu_tools.errors import UserError, not_installed
from cdu_tools.silence import silent_libraries

from cdu_placement.rows import CellRows

#: Units of length of Coloquinte per site; it counts in whole numbers.
_FINE = 10
#: Share of the sites that slots take; the rest is needed to legalise the rows.
_FILLED = 0.96
#: Effort of Coloquinte, 1 to 9.
EFFORT = 3
PACKAGE = "coloquinte"
#: Release that placements are tested with, and the latest Python that the package index has a wheel of it for.
RELEASE, LATEST_PYTHON = "0.4.1", (3, 12)


@dataclass(frozen=True)
class Placement:
    """Cells in rows.

    Parameters
    ----------
    width_um, height_um
        Size of the die.
    widths_um
        Width of every cell of the netlist, in its order.
    centres_um
        Centre of every cell. Pins are assumed to be there: a cell is smaller than most of its wires are long.
    ports_um
        Position of every port, a net, at the edge of the die: inputs on the left, outputs on the right, in order from the top.
    """

    width_um: float
    height_um: float
    widths_um: tuple[float, ...]
    centres_um: tuple[tuple[float, float], ...]
    ports_um: dict[Net, tuple[float, float]]


def version() -> str:
    """Return the version of the installed Coloquinte; MissingToolError if there is none."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed(PACKAGE)
    except PackageNotFoundError:
        raise not_installed("the placer Coloquinte", _remedy()) from None


def _remedy() -> str:
    """Return a hint on how to install the placer for this Python."""
    if sys.version_info[:2] <= LATEST_PYTHON:
        return f"`pip install {PACKAGE}=={RELEASE}`"
    here, latest = (".".join(map(str, python)) for python in (sys.version_info[:2], LATEST_PYTHON))
    return f"Python {latest}: release {RELEASE} has no file for Python {here}"


def check_use(use: float) -> None:
    """Raise UserError for a share of the die that cells cannot take, or that leaves too little room for a router."""
    if not 0.3 <= use <= 0.95:
        raise UserError(f"--use {use:g} is not allowed: use 0.3 to 0.95")


def place(netlist: Netlist, library: Library, rows: CellRows, use: float) -> Placement:
    """Place a netlist; clock nets do not attract their cells, because no clock tree is built.

    Parameters
    ----------
    netlist, library, rows
        The netlist, its library, and the rows to place it in.
    use
        Share of the die that cells take, 0.3 to 0.95.

    Raises MissingToolError without Coloquinte, UserError for a ``use`` that is not allowed.
    """
    check_use(use)
    version()
    import coloquinte

    sites = sites_of(netlist, library, rows)
    count, width = _die(sum(sites), rows, use)
    slots = _slots(sites, count * width)
    ports = _ports(netlist, width * _FINE, count * _row(rows))
    cells, edge = len(sites), list(ports.values())
    circuit: Any = coloquinte.Circuit(cells + len(ports))
    circuit.cell_width = [_FINE * slot for slot in slots] + [0] * len(ports)
    circuit.cell_height = [_row(rows)] * cells + [0] * len(ports)
    circuit.cell_is_fixed = [False] * cells + [True] * len(ports)
    circuit.cell_is_obstruction = [True] * cells + [False] * len(ports)
    circuit.cell_x = [0] * cells + [x for x, _ in edge]
    circuit.cell_y = [0] * cells + [y for _, y in edge]
    for ends in _nets(netlist, library, {net: cells + index for index, net in enumerate(ports)}):
        halves = [(_FINE * slots[end] // 2, _row(rows) // 2) if end < cells else (0, 0) for end in ends]
        circuit.add_net(ends, [x for x, _ in halves], [y for _, y in halves])
    circuit.setup_rows(coloquinte.Rectangle(0, width * _FINE, 0, count * _row(rows)), _row(rows), True, False)
    with silent_libraries():
        circuit.place_global(EFFORT)
        circuit.legalize(EFFORT)
        circuit.place_detailed(EFFORT)
    # Slots are whole sites, and so are positions, so that cells moved to the left of theirs do not overlap.
    lefts = [x // _FINE + (slot - one) // 2 for x, slot, one in zip(circuit.cell_x, slots, sites, strict=False)]
    lines = [y // _row(rows) for y in circuit.cell_y[:cells]]
    places = zip(lefts, lines, sites, strict=True)
    return Placement(
        width * rows.site_um,
        count * rows.height_um,
        tuple(one * rows.site_um for one in sites),
        tuple(((left + one / 2) * rows.site_um, (line + 0.5) * rows.height_um) for left, line, one in places),
        {net: (x * rows.site_um / _FINE, y * rows.height_um / _row(rows)) for net, (x, y) in ports.items()},
    )


def sites_of(netlist: Netlist, library: Library, rows: CellRows) -> list[int]:
    """Return the number of sites of every cell."""
    return [rows.sites(library.cells[kind].area) for kind, _ in netlist.cells]


def clock_nets(netlist: Netlist, library: Library) -> set[Net]:
    """Return the nets of clocks, gated or not."""
    found: set[Net] = set()
    for kind, pins in netlist.cells:
        cell = library.cells[kind]
        if cell.clock_gate:
            found |= {pins[pin] for pin in (cell.clock_gate.clock, cell.clock_gate.output) if pin in pins}
        elif cell.flip_flop:
            found |= {
                pins[arc.source] for arc in cell.arcs if arc.kind in ("rising_edge", "falling_edge") and arc.source in pins
            }
    return found


def _slots(sites: Sequence[int], room: int) -> list[int]:
    """Return the sites for every cell and its share of the free ones, so that wires find room everywhere."""
    share = max(1.0, _FILLED * room / sum(sites))
    slots, owed = [], 0.0
    for one in sites:
        owed += one * share
        slots.append(max(one, int(owed)))
        owed -= slots[-1]
    return slots


def _die(sites: int, rows: CellRows, use: float) -> tuple[int, int]:
    """Return the number of rows, and of sites in each, of a die that is about square."""
    side = math.sqrt(sites * rows.site_um * rows.height_um / use)
    count = max(1, math.ceil(side / rows.height_um))
    return count, math.ceil(sites / use / count)


def _row(rows: CellRows) -> int:
    """Return the height of a row in Coloquinte's units."""
    return round(rows.height_um / rows.site_um * _FINE)


def _ports(netlist: Netlist, width: int, height: int) -> dict[Net, tuple[int, int]]:
    """Return the positions of the ports at the edge of the die."""
    places: dict[Net, tuple[int, int]] = {}
    for nets, x in ((netlist.inputs, 0), (netlist.outputs, width)):
        real = [net for net in dict.fromkeys(nets) if isinstance(net, int) and net not in places]
        places |= {net: (x, height - height * (2 * index + 1) // (2 * len(real))) for index, net in enumerate(real)}
    return places


def _nets(netlist: Netlist, library: Library, ports: dict[Net, int]) -> Iterator[list[int]]:
    """Yield the cells and ports at the ends of every net that is no clock."""
    ends: defaultdict[Net, list[int]] = defaultdict(list)
    for number, (_, pins) in enumerate(netlist.cells):
        for net in set(pins.values()):
            if isinstance(net, int):
                ends[net].append(number)
    for net, port in ports.items():
        ends[net].append(port)
    clocks = clock_nets(netlist, library)
    yield from (found for net, found in ends.items() if net not in clocks and len(found) > 1)
