"""Crossings between the clocks of a unit, found in its Verilog: every path from one clock's state to a register of another.

Names play no part: Yosys flattens the design, and each register is followed back to the registers, memories and ports that it
depends on. A memory that is a :class:`~cdu.parts.ram.Ram` has one clock, so it is read as registers, whatever it is made of. A
synchroniser, a word that a FIFO's pointers hold still, and a reset are told apart by their structure; anything else is a
mistake (:data:`LOGIC`).
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cdu_spec.config import CduConfig
from cdu_tools import yosys

from cdu.delivery.interfaces import clock_pair
from cdu.delivery.memories import Memories

#: Kinds of crossings: the first of two registers of the receiving clock, fed by a register without logic between them; a
#: register fed by words of a memory of the other clock; an asynchronous reset; and anything else, which no unit has.
SYNCHRONISER, DATA, RESET, LOGIC = "synchroniser", "data", "reset", "logic"
_SCRIPT = """\
read_verilog design.v
read_verilog -overwrite ram.v
hierarchy -check -top {top}
proc
flatten
memory_collect
opt_clean
write_json design.json
"""
_MEMORY = "$mem_v2"
#: Ports of registers that state is taken from in step with the clock, and those that act at once.
_CLOCKED, _AT_ONCE = ("D", "EN", "SRST"), ("ARST", "ALOAD", "AD")
_Cell = Mapping[str, Any]


@dataclass(frozen=True)
class Crossing:
    """A register that depends on state of another clock.

    Parameters
    ----------
    register
        The receiving register, by its name in the flattened design.
    sources
        Names of the registers, memories or ports of other clocks that it depends on.
    begin, end
        Ports of the clocks of the sources, and of the register.
    kind
        :data:`SYNCHRONISER`, :data:`DATA`, :data:`RESET` or :data:`LOGIC`.
    width
        Number of bits of the register.
    """

    register: str
    sources: tuple[str, ...]
    begin: str
    end: str
    kind: str
    width: int

    def entry(self) -> dict[str, Any]:
        """Return the entry of the manifest."""
        return asdict(self) | {"sources": list(self.sources)}


def crossings(verilog: str, top: str, ports: Sequence[Mapping[str, Any]], config: CduConfig) -> list[Crossing]:
    """Return all crossings of a unit; a unit with one clock has none, and its Verilog is not read.

    ``ports`` are those of the manifest. Raises YosysError for a text that is no Verilog.
    """
    if not config.own_clocks:
        return []
    with tempfile.TemporaryDirectory(prefix="cdu-crossings-") as folder:
        directory = Path(folder)
        (directory / "design.v").write_text(verilog, encoding="utf-8")
        (directory / "ram.v").write_text(Memories().module(top, [(1, 1)]), encoding="utf-8")
        yosys.run(_SCRIPT.format(top=top), directory, yosys.writer())
        module = json.loads((directory / "design.json").read_text(encoding="utf-8"))["modules"][top]
    return sorted(_Design(module, ports, config).crossings(), key=lambda crossing: crossing.register)


class _Design:
    """A flattened module as a graph of cells."""

    def __init__(self, module: Mapping[str, Any], ports: Sequence[Mapping[str, Any]], config: CduConfig) -> None:
        self._cells: Mapping[str, _Cell] = module["cells"]
        #: Driver of a bit: the name of a cell, or of a port behind a colon.
        self._driver: dict[int, str] = {}
        self._readers: dict[int, set[str]] = defaultdict(set)
        #: Clock of what keeps state, and of ports.
        self._clock: dict[str, str] = {}
        self._names: dict[int, list[str]] = defaultdict(list)
        for name, net in module["netnames"].items():
            for bit in () if net["hide_name"] else net["bits"]:
                self._names[bit].append(name)
        for port in ports:
            if port["direction"] == "input":
                self._clock[f":{port['name']}"] = clock_pair(port["name"], config)[0]
                self._driver |= dict.fromkeys(module["ports"][port["name"]]["bits"], f":{port['name']}")
        for name, cell in self._cells.items():
            for pin, bits in cell["connections"].items():
                if cell["port_directions"][pin] == "output":
                    self._driver |= dict.fromkeys(bits, name)
                else:
                    for bit in bits:
                        self._readers[bit].add(name)
            if (clock := self._clock_bit(cell)) is not None:
                self._clock[name] = self._driver.get(clock, "").removeprefix(":")
        self._reached: dict[str, frozenset[str]] = {}

    def crossings(self) -> Iterator[Crossing]:
        """Yield the crossings of each register, those of its inputs before those of its resets."""
        for name, cell in self._cells.items():
            if name not in self._clock or cell["type"] == _MEMORY:
                continue
            for pins in (_CLOCKED, _AT_ONCE):
                bits = [bit for pin in pins for bit in cell["connections"].get(pin, ())]
                foreign = [source for source in self._sources(bits) if self._clock[source] != self._clock[name]]
                for begin in sorted({self._clock[source] for source in foreign}):
                    sources = [source for source in foreign if self._clock[source] == begin]
                    kind = RESET if pins is _AT_ONCE else self._kind(cell, sources)
                    named = tuple(sorted({self._named(source) for source in sources}))
                    yield Crossing(self._named(name), named, begin, self._clock[name], kind, len(cell["connections"]["D"]))

    def _kind(self, cell: _Cell, sources: Sequence[str]) -> str:
        inputs = cell["connections"]["D"]
        if all(source in self._cells and self._cells[source]["type"] == _MEMORY for source in sources):
            return DATA
        readers = {reader for bit in cell["connections"]["Q"] for reader in self._readers[bit]}
        only_registers = all(
            self._clock.get(reader) == self._clock_of(cell) and self._cells[reader]["type"] != _MEMORY for reader in readers
        )
        direct = all(self._driver.get(bit) in self._clock for bit in inputs)
        return SYNCHRONISER if direct and only_registers and len(readers) == 1 else LOGIC

    def _sources(self, bits: Sequence[Any]) -> frozenset[str]:
        """Return the registers, memories and ports that some bits depend on within a cycle."""
        return frozenset().union(*(self._cone(self._driver[bit]) for bit in dict.fromkeys(bits) if bit in self._driver))

    def _cone(self, begin: str) -> frozenset[str]:
        waiting = [begin]
        while waiting:
            name = waiting[-1]
            inputs = () if self._ends(name) else self._inputs(name)
            missing = [other for other in inputs if other not in self._reached]
            if missing and name not in self._reached:
                self._reached[name] = frozenset()  # ends a loop
                waiting += missing
                continue
            own = frozenset({name}) if name in self._clock else frozenset()
            self._reached[name] = own.union(*(self._reached[other] for other in inputs))
            waiting.pop()
        return self._reached[begin]

    def _ends(self, name: str) -> bool:
        """Return whether nothing behind a cell or port reaches its output within a cycle: a memory's addresses do."""
        return name.startswith(":") or (name in self._clock and self._cells[name]["type"] != _MEMORY)

    def _inputs(self, name: str) -> list[str]:
        cell = self._cells[name]
        pins = ["RD_ADDR"] if cell["type"] == _MEMORY else [p for p, way in cell["port_directions"].items() if way == "input"]
        bits = (bit for pin in pins for bit in cell["connections"][pin])
        return list(dict.fromkeys(self._driver[bit] for bit in bits if bit in self._driver))

    def _clock_of(self, cell: _Cell) -> str:
        return self._driver[cell["connections"]["CLK"][0]].removeprefix(":")

    @staticmethod
    def _clock_bit(cell: _Cell) -> Any:
        """Return the bit of a cell's clock, None for a cell that keeps nothing."""
        pin = "WR_CLK" if cell["type"] == _MEMORY else "CLK"
        return next(iter(cell["connections"].get(pin, ())), None)

    def _named(self, name: str) -> str:
        """Return the name of what keeps state as the Verilog has it: a register is called as the net that it drives."""
        if name.startswith(":"):
            return name.removeprefix(":")
        cell = self._cells[name]
        if cell["type"] == _MEMORY:
            return str(cell["parameters"]["MEMID"]).removeprefix("\\")
        names = self._names[cell["connections"]["Q"][0]]
        # A net has names in every module that it passes; Yosys calls the cell after the module with the register.
        place = name.replace("\\", "").removeprefix("$flatten").rpartition(".$")[0]
        return next((one for one in names if one.rpartition(".")[0] == place), [*names, name][0])
