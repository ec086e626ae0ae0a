"""Trees of buffers rebuilt at the positions of cells: the mapper made them before placement, often as chains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cdu_synth.area.timing import Net, Netlist, Path, Timing
from cdu_synth.library.liberty import Library

from cdu_placement.placer import Placement, clock_nets
from cdu_placement.rows import CellRows
from cdu_placement.wires import wires_of

#: Greatest number of ends that a buffer drives.
_FAN_OUT = 10
#: Greatest number of trees that are tried.
_TRIES = 60


class _Sink(NamedTuple):
    """An input of a cell."""

    cell: int
    pin: str


@dataclass(frozen=True)
class _Tree:
    """A net, the buffers behind it, and the inputs that these finally drive."""

    root: Net
    buffers: tuple[int, ...]
    sinks: tuple[_Sink, ...]


def rebuffered(
    netlist: Netlist, library: Library, rows: CellRows, placement: Placement, notify: Callable[[], None] | None = None
) -> tuple[Netlist, Placement]:
    """Return the netlist with trees of buffers on its slowest paths rebuilt, as long as that makes the paths faster.

    The ends of a tree are grouped by their positions, ten to a buffer in their middle, and the buffers likewise. The cells of
    the placement are not yet in rows: :func:`~cdu_placement.legalise.settled` puts them there. ``notify`` is called for
    every tree.
    """
    buffers = {name for name, cell in library.cells.items() if cell.usable and cell.computes(lambda a: a, 1)}
    clocks, tried = clock_nets(netlist, library), set[Net]()
    path = _slowest(netlist, library, rows, placement)
    for _ in range(_TRIES):
        tree = next((one for one in _trees(netlist, library, buffers, path) if one.root not in tried | clocks), None)
        if tree is None or path is None:
            break
        tried.add(tree.root)
        attempt, moved = _rebuilt(netlist, library, placement, tree)
        slowest = _slowest(attempt, library, rows, moved)
        if notify:
            notify()
        if slowest is not None and slowest.delay_ns < path.delay_ns - 1e-6:
            netlist, placement, path = attempt, moved, slowest
    return netlist, placement


def _slowest(netlist: Netlist, library: Library, rows: CellRows, placement: Placement) -> Path | None:
    return Timing(netlist, library, wires_of(netlist, library, rows, placement).wires).slowest()


def _trees(netlist: Netlist, library: Library, buffers: set[str], path: Path | None) -> Iterator[_Tree]:
    """Yield the trees on a path, those with most of its buffers first."""
    if path is None:
        return
    sinks: defaultdict[Net, list[_Sink]] = defaultdict(list)
    drivers: dict[Net, int] = {}
    for number, (kind, pins) in enumerate(netlist.cells):
        for pin, net in pins.items():
            if pin in library.cells[kind].capacitances:
                sinks[net].append(_Sink(number, pin))
            else:
                drivers[net] = number
    ports = set(netlist.outputs)
    counts: dict[Net, int] = {}
    for number in path.steps:
        kind, pins = netlist.cells[number]
        if kind not in buffers:
            continue
        root = _input(library, kind, pins)
        while root in drivers and netlist.cells[drivers[root]][0] in buffers:
            root = _input(library, *netlist.cells[drivers[root]])
        counts[root] = counts.get(root, 0) + 1
    for root in sorted(counts, key=lambda net: -counts[net]):
        inner, ends, waiting = list[int](), list[_Sink](), [root]
        while waiting:
            for sink in sinks[waiting.pop()]:
                kind, pins = netlist.cells[sink.cell]
                behind = [net for pin, net in pins.items() if pin not in library.cells[kind].capacitances]
                # The net of a port keeps its driver.
                if kind in buffers and not ports & set(behind):
                    inner.append(sink.cell)
                    waiting += behind
                else:
                    ends.append(sink)
        yield _Tree(root, tuple(inner), tuple(ends))


def _input(library: Library, kind: str, pins: dict[str, Net]) -> Net:
    (pin,) = library.cells[kind].capacitances
    return pins[pin]


def _rebuilt(netlist: Netlist, library: Library, placement: Placement, tree: _Tree) -> tuple[Netlist, Placement]:
    """Return the netlist with one tree rebuilt, and the positions of its cells."""
    cells, places = list(netlist.cells), list(netlist.places)
    centres, widths = list(placement.centres_um), list(placement.widths_um)
    kind, model = cells[tree.buffers[0]]
    (source,) = library.cells[kind].capacitances
    (target,) = (pin for pin in model if pin != source)
    fresh = max(net for _, pins in cells for net in pins.values() if isinstance(net, int)) + 1
    level: list[_Sink] = list(tree.sinks)
    while len(level) > _FAN_OUT:
        above = []
        for group in _groups(level, centres):
            for sink in group:
                one, pins = cells[sink.cell]
                cells[sink.cell] = one, {**pins, sink.pin: fresh}
            above.append(_Sink(len(cells), source))
            cells.append((kind, {target: fresh}))
            places.append(places[tree.buffers[0]])
            middles = [centres[sink.cell] for sink in group]
            centres.append((sum(x for x, _ in middles) / len(group), sum(y for _, y in middles) / len(group)))
            widths.append(widths[tree.buffers[0]])
            fresh += 1
        level = above
    for sink in level:
        one, pins = cells[sink.cell]
        cells[sink.cell] = one, {**pins, sink.pin: tree.root}
    gone = set(tree.buffers)
    kept = [number for number in range(len(cells)) if number not in gone]
    whole = replace(netlist, cells=tuple(cells[number] for number in kept), places=tuple(places[number] for number in kept))
    return whole, replace(
        placement,
        centres_um=tuple(centres[number] for number in kept),
        widths_um=tuple(widths[number] for number in kept),
    )


def _groups(sinks: Sequence[_Sink], centres: Sequence[tuple[float, float]]) -> Iterator[list[_Sink]]:
    """Yield groups of neighbouring sinks: halves of halves, cut across the longer side."""
    if len(sinks) <= _FAN_OUT:
        yield list(sinks)
        return
    places = [[centres[sink.cell][axis] for sink in sinks] for axis in (0, 1)]
    spans = [max(one) - min(one) for one in places]
    axis = spans.index(max(spans))
    ordered = sorted(sinks, key=lambda sink: (centres[sink.cell][axis], sink))
    half = len(ordered) // 2
    yield from _groups(ordered[:half], centres)
    yield from _groups(ordered[half:], centres)
