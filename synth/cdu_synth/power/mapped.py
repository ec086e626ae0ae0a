"""Module of library cells after synthesis: its cells with their names, and its text for a simulator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cdu_synth.area import hierarchy
from cdu_synth.area.timing import Net

_CONSTANTS = {"0": "1'b0", "1": "1'b1"}


@dataclass(frozen=True)
class MappedCell:
    """One cell: its name in the netlist, its type, and its pins' nets."""

    name: str
    kind: str
    pins: Mapping[str, Net]

    @property
    def place(self) -> str:
        """Return the path of the cell's former instance (:func:`cdu_synth.area.hierarchy.place`)."""
        return hierarchy.place(self.name)


@dataclass(frozen=True)
class MappedPort:
    """A port: ``input`` or ``output``, and the nets of its bits from bit 0 on."""

    direction: str
    nets: tuple[Net, ...]


@dataclass(frozen=True)
class MappedModule:
    """A flat module of library cells, from Yosys' JSON."""

    name: str
    cells: tuple[MappedCell, ...]
    ports: Mapping[str, MappedPort]

    @classmethod
    def of(cls, design: Mapping[str, Any], top: str) -> MappedModule:
        """Return the module ``top`` from the output of ``write_json``."""
        module = design["modules"][top]
        cells = tuple(
            MappedCell(name, cell["type"], {pin: bits[0] for pin, bits in cell["connections"].items() if bits})
            for name, cell in module["cells"].items()
            if cell["type"] != "$scopeinfo"
        )
        ports = {name: MappedPort(port["direction"], tuple(port["bits"])) for name, port in module["ports"].items()}
        return cls(top, cells, ports)

    @property
    def kinds(self) -> list[str]:
        """Return the types of its cells, sorted."""
        return sorted({cell.kind for cell in self.cells})

    @property
    def nets(self) -> list[int]:
        """Return the nets, sorted; constants are not among them."""
        used = {net for cell in self.cells for net in cell.pins.values()}
        used.update(net for port in self.ports.values() for net in port.nets)
        return sorted(net for net in used if isinstance(net, int))

    def verilog(self) -> str:
        """Return structural Verilog with the module's ports; net 17 of the netlist is the wire ``n17``."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"module {self.name}({', '.join(self.ports)});"
        for name, port in self.ports.items():
            yield f"  {port.direction} [{len(port.nets) - 1}:0] {name};"
        yield from (f"  wire {wire(net)};" for net in self.nets)
        for name, port in self.ports.items():
            for index, net in enumerate(port.nets):
                ends = (wire(net), f"{name}[{index}]") if port.direction == "input" else (f"{name}[{index}]", wire(net))
                yield f"  assign {ends[0]} = {ends[1]};"
        for number, cell in enumerate(self.cells):
            pins = ", ".join(f".{pin}({wire(net)})" for pin, net in cell.pins.items())
            yield f"  {cell.kind} c{number} ({pins});"
        yield "endmodule"


def wire(net: Net) -> str:
    """Return the name of a net in :meth:`MappedModule.verilog`; undefined constants are 0."""
    return f"n{net}" if isinstance(net, int) else _CONSTANTS.get(net, "1'b0")


def net_of(name: str) -> int | None:
    """Return the net of a wire's name; None for any other name."""
    found = re.fullmatch(r"n(\d+)", name)
    return int(found[1]) if found else None
