"""Static timing of a mapped netlist with the delay tables of its library (NLDM).

Assumptions, as usual before layout: an ideal clock, gated or not, no wires unless :class:`Wires` are given, inputs that arrive
at 0 with the steepest edge, outputs without load. A path begins at the clock of a flip-flop or memory (clock-to-output delay
included) or at an input, and ends at the data pin of a flip-flop, at a pin of a memory, at the enable of a clock gate (setup
time included) or at an output. Latches are transparent while the clock is high: a path continues through them, and one that
ends there has half a period. All conditions of an arc are possible; false paths are included.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cdu_synth.area import hierarchy
from cdu_synth.library.liberty import Arc, Cell, DelayTable, Library

#: A net of Yosys' JSON: a number, or a constant as the text 0, 1 or x.
Net = int | str
#: Arrival and transition of one edge.
_Edge = tuple[float, float]
_NEVER: _Edge = (float("-inf"), 0.0)
#: Number of a port among the ends of a net; cells have their own numbers.
PORT = -1
#: Rise time from 10 to 90 % behind a resistance and a capacitance, divided by their product.
_RISE = math.log(9)


@dataclass(frozen=True)
class Wires:
    """Wires between cells, in units of the library: capacitance by net, delay by net and receiving cell."""

    capacitances: Mapping[Net, float]
    delays: Mapping[tuple[Net, int], float]


@dataclass(frozen=True)
class Path:
    """Slowest path of a netlist.

    Its total in ns, the names of the nets where it begins and ends, in Verilog's spelling, and the numbers of the netlist's
    cells on it, including a flip-flop at its begin.
    """

    delay_ns: float
    start: str
    end: str
    steps: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Return the number of cells on the path."""
        return len(self.steps)


@dataclass(frozen=True)
class Netlist:
    """A flat module of library cells, from Yosys' JSON.

    Parameters
    ----------
    cells
        (cell type, {pin: net}) of every cell.
    inputs, outputs
        Nets of the input and output ports.
    names
        A name for every net.
    places
        Path of each cell's instance before the module was flattened; empty if it is unknown.
    """

    cells: tuple[tuple[str, dict[str, Net]], ...]
    inputs: tuple[Net, ...]
    outputs: tuple[Net, ...]
    names: dict[Net, str]
    places: tuple[str, ...]

    @classmethod
    def of(cls, design: dict[str, Any], top: str) -> Netlist:
        """Return the module ``top`` from the output of ``write_json``; nets are numbers, constants the texts 0, 1, x."""
        module = design["modules"][top]
        names: dict[Net, str] = {}
        # Names from the source come first; generated ones fill the gaps.
        for hidden in (0, 1):
            for name, net in module["netnames"].items():
                if net.get("hide_name", 0) == hidden:
                    for index, bit in enumerate(net["bits"]):
                        names.setdefault(bit, f"{name}[{index}]" if len(net["bits"]) > 1 else name)
        ports: dict[str, list[Net]] = {"input": [], "output": []}
        for port in module["ports"].values():
            ports[port["direction"]] += port["bits"]
        kept = {name: cell for name, cell in module["cells"].items() if not cell["type"].startswith("$scopeinfo")}
        cells = tuple((cell["type"], dict(_pins(cell["connections"]))) for cell in kept.values())
        return cls(cells, tuple(ports["input"]), tuple(ports["output"]), names, tuple(map(hierarchy.place, kept)))

    def name(self, net: Net) -> str:
        """Return the name of a net; for a net without a source name that behind an inverter (a flip-flop's inverted output)."""
        name = self.names.get(net, str(net))
        if name.startswith("$"):
            for _, pins in self.cells:
                if net in pins.values() and len(pins) == 2:
                    behind = [self.names.get(other, "$") for other in pins.values() if other != net]
                    if behind and not behind[0].startswith("$"):
                        return behind[0]
        return name

    def state(self, number: int, library: Library) -> Net | None:
        """Return the net at the output of a cell, which identifies a flip-flop."""
        kind, pins = self.cells[number]
        return next((pins[pin] for pin in library.cells[kind].functions if pin in pins), None)


def _pins(connections: dict[str, list[Net]]) -> Iterator[tuple[str, Net]]:
    """Yield pins of a cell and their nets; a pin of several bits, which only macros have, is one pin per bit."""
    for pin, nets in connections.items():
        if len(nets) == 1:
            yield pin, nets[0]
        else:
            yield from ((f"{pin}[{bit}]", net) for bit, net in enumerate(nets))


class Timing:
    """Compute arrival times of all nets of a netlist, at their drivers."""

    def __init__(self, netlist: Netlist, library: Library, wires: Wires | None = None) -> None:
        self._netlist, self._library = netlist, library
        self._delays = wires.delays if wires else {}
        self._load: defaultdict[Net, float] = defaultdict(float)
        self._arrival: dict[Net, tuple[_Edge, _Edge]] = {}
        #: For each edge of a net that a cell causes: the causing edge before the cell (None: a clock's), and the cell's
        #: number.
        self._cause: dict[tuple[Net, int], tuple[tuple[Net, int] | None, int]] = {}
        self._types = [library.cells[kind] for kind, _ in netlist.cells]
        for cell, (_, pins) in zip(self._types, netlist.cells, strict=True):
            for pin, capacitance in cell.capacitances.items():
                if pin in pins:
                    self._load[pins[pin]] += capacitance
        for net, capacitance in wires.capacitances.items() if wires else ():
            self._load[net] += capacitance
        self._propagate()

    def slowest(self) -> Path | None:
        """Return the slowest path, or None if the netlist has none."""
        return next(iter(self.slowest_paths(1)), None)

    def slowest_paths(self, count: int) -> list[Path]:
        """Return the slowest path to each of the ``count`` latest registers or ports, the bits of one taken together."""
        found: dict[str, Path] = {}
        for delay, end, state in sorted(self._ends(), key=lambda one: -one[0]):
            name = self._netlist.name(state)
            register = name.partition("[")[0]
            if register not in found:
                start, steps = self._trace(end)
                found[register] = Path(delay * self._library.time_ns, self._netlist.name(start), name, steps)
            if len(found) == count:
                break
        return list(found.values())

    def _ends(self) -> Iterator[tuple[float, tuple[Net, int], Net]]:
        """Yield each end of a path: delay with setup, the edge that arrives, and the net that names the register or port."""
        for number, (cell, (_, pins)) in enumerate(zip(self._types, self._netlist.cells, strict=True)):
            for setup in cell.setups:
                net = pins.get(setup.target)
                if net is not None and net in self._arrival:
                    state = self._netlist.state(number, self._library)
                    arrival = self._behind_wire(net, number)
                    for edge in (0, 1):
                        total = _constraint(setup, arrival, edge) * (2 if cell.latch else 1)
                        yield total, (net, edge), net if state is None else state
        for net in self._netlist.outputs:
            for edge, (total, _) in enumerate(self._behind_wire(net, PORT) if net in self._arrival else ()):
                yield total, (net, edge), net

    def _trace(self, end: tuple[Net, int]) -> tuple[Net, tuple[int, ...]]:
        """Return the net where the path to an edge begins, and the cells on it."""
        steps: list[int] = []
        here: tuple[Net, int] | None = end
        start = end[0]
        while here is not None:
            start = here[0]
            here, number = self._cause.get(here, (None, None))
            steps += [] if number is None else [number]
        return start, tuple(reversed(steps))

    def load(self, net: Net) -> float:
        """Return the capacitance of the pins that a net drives, in units of the library."""
        return self._load.get(net, 0.0)

    def transition(self, net: Net) -> float:
        """Return the mean transition of a net's edges, in units of the library; 0 at inputs and where nothing arrives."""
        rise, fall = self._arrival.get(net, (_NEVER, _NEVER))
        return (rise[1] + fall[1]) / 2

    def _behind_wire(self, net: Net, end: int) -> tuple[_Edge, _Edge]:
        """Return the edges of a net at one of its ends; a wire makes them later and less steep."""
        rise, fall = self._arrival[net]
        delay = self._delays.get((net, end))
        if not delay:
            return rise, fall
        return (rise[0] + delay, math.hypot(rise[1], _RISE * delay)), (fall[0] + delay, math.hypot(fall[1], _RISE * delay))

    def _propagate(self) -> None:
        """Visit every arc once all nets before it are known."""
        leaving: defaultdict[Net, list[int]] = defaultdict(list)
        waiting: list[int] = []
        steps: list[tuple[int, list[tuple[Arc, Net, Net]]]] = []
        for number, (cell, (_, pins)) in enumerate(zip(self._types, self._netlist.cells, strict=True)):
            inner = [
                (arc, pins[arc.source], pins[arc.target])
                for arc in cell.arcs
                if arc.kind == "combinational" and arc.source in pins and arc.target in pins
            ]
            if inner and not cell.flip_flop and not cell.clock_gate and not cell.macro:
                sources = {source for _, source, _ in inner if isinstance(source, int)}
                for net in sources:
                    leaving[net].append(len(steps))
                waiting.append(len(sources))
                steps.append((number, inner))
        ready: list[Net] = []
        for port in self._netlist.inputs:
            self._arrival[port] = ((0.0, 0.0), (0.0, 0.0))
            ready.append(port)
        for number, (cell, (_, pins)) in enumerate(zip(self._types, self._netlist.cells, strict=True)):
            if cell.flip_flop or cell.macro:
                ready += self._launch(number, cell, pins)
            elif not cell.capacitances:
                ready += [pins[name] for name in cell.functions if name in pins]
        # Cells fed by constants alone never wait; their outputs never switch.
        for index, count in enumerate(waiting):
            ready += [] if count else dict.fromkeys(target for _, _, target in steps[index][1])
        while ready:
            for index in leaving.pop(ready.pop(), ()):
                waiting[index] -= 1
                if waiting[index] == 0:
                    number, inner = steps[index]
                    for arc, source, target in inner:
                        self._pass(number, arc, source, target)
                    ready += list(dict.fromkeys(target for _, _, target in inner))

    def _launch(self, number: int, cell: Cell, pins: dict[str, Net]) -> list[Net]:
        """Return the outputs of a flip-flop, set to the clock-to-output delay from an ideal edge."""
        outputs = []
        for arc in cell.arcs:
            if arc.kind in ("rising_edge", "falling_edge") and arc.target in pins:
                net = pins[arc.target]
                known = self._arrival.get(net, (_NEVER, _NEVER))
                rise, fall = (_worst(known[edge], self._edge(arc, edge, (0.0, 0.0), self._load[net])) for edge in (0, 1))
                self._arrival[net] = (rise, fall)
                self._cause |= {(net, edge): (None, number) for edge in (0, 1)}
                outputs.append(net)
        return list(dict.fromkeys(outputs))

    def _pass(self, number: int, arc: Arc, source: Net, target: Net) -> None:
        if source not in self._arrival:
            return
        before = self._behind_wire(source, number)
        after = list(self._arrival.get(target, (_NEVER, _NEVER)))
        load = self._load[target]
        for edge in (0, 1):
            causes = {"positive_unate": (edge,), "negative_unate": (1 - edge,)}.get(arc.sense, (0, 1))
            for cause in causes:
                arrival, transition = self._edge(arc, edge, before[cause], load)
                if arrival > after[edge][0]:
                    self._cause[target, edge] = (source, cause), number
                after[edge] = _worst(after[edge], (arrival, transition))
        self._arrival[target] = (after[0], after[1])

    @staticmethod
    def _edge(arc: Arc, edge: int, before: _Edge, load: float) -> _Edge:
        delay, transition = arc.delays[edge], arc.transitions[edge]
        if delay is None:
            return _NEVER
        return before[0] + delay.at(before[1], load), transition.at(before[1], load) if transition else before[1]


def _worst(one: _Edge, other: _Edge) -> _Edge:
    """Return the later arrival and the slower transition, even if they come from different inputs."""
    return max(one[0], other[0]), max(one[1], other[1])


def _constraint(setup: Arc, arrival: tuple[_Edge, _Edge], edge: int) -> float:
    """Return the arrival plus setup time of one edge of the data, at an ideal clock edge."""
    table: DelayTable | None = setup.delays[edge]
    return arrival[edge][0] + (table.at(arrival[edge][1], 0.0) if table else 0.0)
