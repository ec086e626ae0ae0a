"""Simulator of a netlist of library cells that counts the changes of every net.

Two-valued and without delays: in a cycle every net takes one value, so there are no glitches. Flip-flops begin at 0.
The functions are those of the library's cells as :func:`cdu_synth.library.functions.evaluate` reads them.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from cdu_spec.config_rules import RESET_PORTS
from cdu_tools.cache import entry, load_library
from cdu_tools.compilers import cpp_compiler
from cdu_tools.errors import UserError

from cdu_synth.area.timing import Net
from cdu_synth.library.cell_groups import FlipFlop, flip_flops, library_groups
from cdu_synth.library.functions import evaluate
from cdu_synth.library.liberty import LibertyError, Library
from cdu_synth.power.activity import Activity, Stimulus
from cdu_synth.power.mapped import MappedModule

Array = npt.NDArray[Any]

_SOURCE = Path(__file__).with_name("gate_simulator.cpp")
_OPTIONS = ("-O2", "-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra")
_LIBRARY = "gate_simulator.so"
_RESET_CYCLES = 4
#: Cycles within which one word must move, and cycles at the end in which no word may come.
_PATIENCE, _SILENCE = 500, 40


class GateSimulationError(UserError, RuntimeError):
    """Netlist that cannot be simulated, or makes no progress; the message says why."""


class _Netlist(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("gates", "flip_flops", "pins", "tables", "values")),
        *((name, ctypes.c_uint64) for name in ("gate_count", "flip_flop_count", "net_count")),
    )


class _Stream(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("payload", "words")),
        *((name, ctypes.c_uint64) for name in ("count", "moved")),
        *((name, ctypes.c_uint32) for name in ("width", "valid", "ready", "receives")),
    )


class _Counts(ctypes.Structure):
    _fields_ = (("toggles", ctypes.c_void_p), ("high", ctypes.c_void_p))


class _Lookups:
    """Truth tables, each stored once, and the pins of the cells that use them."""

    def __init__(self) -> None:
        self.pins: list[int] = []
        self.tables = bytearray()
        self._known: dict[bytes, int] = {}

    def add(self, result: int, table: bytes, nets: Sequence[int]) -> tuple[int, int, int, int]:
        """Add a use of a table at nets and return the fields of ``Lookup``."""
        if table not in self._known:
            self._known[table] = len(self.tables)
            self.tables += table
        first = len(self.pins)
        self.pins += nets
        return result, first, len(nets), self._known[table]


@cache
def _truth_table(function: str, variables: tuple[str, ...]) -> bytes:
    rows = product((False, True), repeat=len(variables))
    return bytes(evaluate(function, dict(zip(variables, row, strict=True))) for row in rows)


class GateSimulator:
    """A mapped module, ready to be simulated.

    Parameters
    ----------
    module
        A flat module of library cells with the clock ``clk`` and a synchronous reset of either level
        (:data:`cdu_spec.config_rules.RESET_PORTS`).
    library
        The cells' library.

    Raises GateSimulationError for a loop of gates or another clock, LibertyError for cells without a function.
    """

    def __init__(self, module: MappedModule, library: Library) -> None:
        self.module = module
        _, groups = library_groups(library, module.kinds)
        known = flip_flops(groups)
        (clock,) = module.ports["clk"].nets
        lookups, gates, states = _Lookups(), list[tuple[int, int, int, int]](), list[tuple[int, int, int, int]]()
        self._count = max(module.nets, default=1) + 1
        #: Nets of gated clocks. In the simulation they are 1 in cycles that pass.
        gates_of = {cell.name: library.cells[cell.kind].clock_gate for cell in module.cells}
        gated = [cell.pins[gate.output] for cell in module.cells if (gate := gates_of[cell.name])]
        for cell in module.cells:
            kind = library.cells[cell.kind]
            inputs = tuple(pin for pin in kind.capacitances if pin in cell.pins)
            nets = [_index(cell.pins[pin]) for pin in inputs]
            flop, clock_gate = known.get(cell.kind), kind.clock_gate
            if flop:
                _check(flop, cell.kind, cell.pins, {clock, *gated})
                state, self._count = self._count, self._count + 1
                # A flip-flop with an enable keeps its state, like one with its clock gated.
                next_state = flop.next_state
                if cell.pins[flop.clock] != clock:
                    next_state = f"({next_state}) & {flop.clock} | {flop.state} & !{flop.clock}"
                table = _truth_table(next_state, (*inputs, flop.state))
                states.append(lookups.add(state, table, [*nets, state]))
            elif clock_gate:
                if cell.pins[clock_gate.clock] != clock:
                    raise GateSimulationError(f"a {cell.kind} does not gate clk itself")
                enabled = _truth_table(clock_gate.enable, (clock_gate.enable,))
                gates.append(lookups.add(_index(cell.pins[clock_gate.output]), enabled, [_index(cell.pins[clock_gate.enable])]))
                continue
            for pin, function in kind.functions.items():
                if not isinstance(net := cell.pins.get(pin), int):
                    continue
                if flop:
                    shown = bytes(evaluate(function, {flop.state: one, flop.inverse: not one}) for one in (False, True))
                    gates.append(lookups.add(net, shown, [state]))
                else:
                    gates.append(lookups.add(net, _truth_table(function, inputs), nets))
            if not kind.functions:
                raise LibertyError(f"cell {cell.kind} of {library.name} has no function: it cannot be simulated")
        ordered = _in_order(gates, lookups.pins)
        self._gates = np.array(ordered, np.uint32).reshape(-1, 4)
        self._states = np.array(states, np.uint32).reshape(-1, 4)
        self._pins, self._tables = np.array(lookups.pins, np.uint32), np.frombuffer(bytes(lookups.tables), np.uint8)
        self._clock, self._gated = _index(clock), [net for net in gated if isinstance(net, int)]

    def run(self, stimulus: Stimulus) -> tuple[dict[str, list[int]], Activity]:
        """Return the output words by stream, and the activity from the first cycle to that of the last expected word.

        Raises GateSimulationError if fewer or more words come than expected.
        """
        values = np.zeros(self._count, np.uint8)
        values[1] = 1  # constants are nets 0 and 1; Yosys' numbers begin behind them
        for name, bits in stimulus.settings.items():
            self._set(values, name, bits)
        level, reset = next((level, port) for level, port in RESET_PORTS.items() if port in self.module.ports)
        self._set(values, reset, int(level == "high"))
        self._step(values, [], _RESET_CYCLES, None)
        self._set(values, reset, int(level == "low"))
        if stimulus.starts:
            self._set(values, "start", 1)
            self._step(values, [], 1, None)
            self._set(values, "start", 0)
        streams, buffers = self._streams(stimulus)
        toggles, high = np.zeros(self._count, np.uint64), np.zeros(self._count, np.uint64)
        limit = _PATIENCE * (1 + sum(stream.count for stream in streams))
        cycles = self._step(values, streams, limit, _Counts(toggles.ctypes.data, high.ctypes.data))
        moved = {name: int(stream.moved) for name, stream in zip(buffers, streams, strict=True)}
        if any(stream.moved < stream.count for stream in streams):
            raise GateSimulationError(
                f"{self.module.name} does not go on: after {cycles} cycles its streams have moved {moved}"
            )
        idle = (_Stream * len(streams))(*(_idle(stream) for stream in streams))
        self._step(values, idle, _SILENCE, None)
        if more := [name for name, stream in zip(buffers, idle, strict=True) if not stream.receives and stream.moved]:
            raise GateSimulationError(f"{self.module.name} sends more words than expected at {', '.join(more)}")
        received = {name: _integers(buffers[name]) for name in stimulus.expected}
        nets = self.module.nets
        counts = {net: int(toggles[net]) for net in nets}
        shares = {net: float(high[net]) / cycles for net in nets}
        counts[self._clock], shares[self._clock] = 2 * cycles, 0.5
        for net in self._gated:
            counts[net], shares[net] = 2 * int(high[net]), shares[net] / 2
        return received, Activity(cycles, counts, shares)

    def _set(self, values: Array, port: str, bits: int) -> None:
        for number, net in enumerate(self.module.ports[port].nets):
            values[_index(net)] = bits >> number & 1

    def _streams(self, stimulus: Stimulus) -> tuple[Any, dict[str, Array]]:
        """Return the streams of the module, and the bits of their words (count, width)."""
        made, buffers = [], dict[str, Array]()
        self._payloads = []
        for name in [port.removesuffix("__valid") for port in self.module.ports if port.endswith("__valid")]:
            receives = self.module.ports[f"{name}__valid"].direction == "input"
            payload = self.module.ports[f"{name}__payload"].nets
            if receives:
                words = _bits(stimulus.inputs.get(name, ()), len(payload))
            else:
                words = np.zeros((stimulus.expected.get(name, 0), len(payload)), np.uint8)
            nets = np.array([_index(net) for net in payload], np.uint32)
            self._payloads.append(nets)
            valid, ready = (_index(self.module.ports[f"{name}__{role}"].nets[0]) for role in ("valid", "ready"))
            place = (nets.ctypes.data, words.ctypes.data, len(words), 0, len(payload), valid, ready, receives)
            made.append(_Stream(*place))
            buffers[name] = words
        return (_Stream * len(made))(*made), buffers

    def _step(self, values: Array, streams: Any, cycles: int, counts: _Counts | None) -> int:
        arrays = (self._gates, self._states, self._pins, self._tables, values)
        netlist = _Netlist(*(one.ctypes.data for one in arrays), len(self._gates), len(self._states), self._count)
        given = ctypes.byref(counts) if counts else None
        return int(_library().run(ctypes.byref(netlist), streams or None, len(streams), cycles, given))


def _index(net: Net) -> int:
    """Return the index of a net's value; undefined constants are 0."""
    return net if isinstance(net, int) else int(net == "1")


def _check(flop: FlipFlop, kind: str, pins: Mapping[str, Net], clocks: Collection[Net]) -> None:
    """Raise GateSimulationError for a flip-flop that is not plain or not clocked by the module's clock, gated or not."""
    tied = {pin: net == "1" for pin, net in pins.items() if isinstance(net, str)}
    for function in filter(None, (flop.clear, flop.preset)):
        try:
            active = evaluate(function, tied)
        except KeyError:
            active = True
        if active:
            raise GateSimulationError(f"the asynchronous set or reset of a {kind} is not at a constant that turns it off")
    if pins.get(flop.clock) not in clocks:
        raise GateSimulationError(f"a {kind} does not have the rising edge of clk as its clock")


def _in_order(gates: Sequence[tuple[int, int, int, int]], pins: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """Return gates sorted so that each follows those that drive it. GateSimulationError for a loop."""
    driver = {gate[0]: number for number, gate in enumerate(gates)}
    waiting = [0] * len(gates)
    followers: list[list[int]] = [[] for _ in gates]
    for number, (_, first, count, _) in enumerate(gates):
        for net in set(pins[first : first + count]):
            if net in driver:
                followers[driver[net]].append(number)
                waiting[number] += 1
    ready = [number for number, count in enumerate(waiting) if count == 0]
    for number in ready:
        for follower in followers[number]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                ready.append(follower)
    if len(ready) < len(gates):
        raise GateSimulationError(f"{len(gates) - len(ready)} gates form loops, or stand behind one")
    return [gates[number] for number in ready]


def _bits(words: Sequence[int], width: int) -> Array:
    """Return words as bits (count, width), bit 0 first."""
    size = -(-width // 8)
    raw = np.frombuffer(b"".join(word.to_bytes(size, "little") for word in words), np.uint8).reshape(-1, size)
    return np.ascontiguousarray(np.unpackbits(raw, axis=1, bitorder="little")[:, :width])


def _integers(bits: Array) -> list[int]:
    packed = np.packbits(bits, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def _idle(stream: _Stream) -> _Stream:
    """Return a stream with no words to send and no room."""
    return _Stream(stream.payload, stream.words, 0, 0, stream.width, stream.valid, stream.ready, stream.receives)


@cache
def _library() -> ctypes.CDLL:
    """Return the compiled simulator, which is made if it is not in the cache.

    MissingToolError without a C++ compiler, GateSimulationError for one that fails.
    """
    compiler = cpp_compiler("simulating gates")

    def make(folder: Path) -> None:
        command = [compiler, *_OPTIONS, str(_SOURCE), "-o", str(folder / _LIBRARY)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise GateSimulationError(
                f"{compiler} cannot compile the gate simulator ({done.stderr.strip()[:200]}): use another $CXX"
            )

    machine = subprocess.run([compiler, "-dM", "-E", "-x", "c++", os.devnull], check=True, capture_output=True, text=True)
    folder = entry("gate_simulator", [_SOURCE.read_text(encoding="utf-8"), _OPTIONS, machine.stdout], make)
    library = load_library(folder / _LIBRARY)
    library.run.restype = ctypes.c_uint64
    library.run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p)
    return library
