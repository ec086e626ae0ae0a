"""Slowest path in a report of nextpnr, with the modules of the Verilog text on it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Suffix that Yosys adds to a net's name for a cell: ``row[3]_TRELLIS_FF_Q_1_DI_LUT4_Z``.
_MADE_UP = re.compile(r"(\.\d+\.\d+)?(_(TRELLIS_|DP16KD|MULT18X18D|CCU2C|LUT4|PFUMX|L6MUX21).*|\$.*)?$")
_LINE = re.compile(r"design\.v:(\d+)")


@dataclass(frozen=True)
class CriticalPath:
    """A path between two registers.

    Parameters
    ----------
    start, end
        Nets where the path begins and ends, if synthesis kept their names.
    modules
        Modules of the Verilog text that its cells come from, in order; cells without a line of the text belong to none.
    levels
        Number of cells between the registers; each half of a carry cell is one.
    logic_ns, routing_ns
        Delay in cells, clock-to-output and setup included, and in wires.
    """

    start: str
    end: str
    modules: tuple[str, ...]
    levels: int
    logic_ns: float
    routing_ns: float


def critical_path(report: Mapping[str, Any], cells: Mapping[str, Any], verilog: str) -> CriticalPath | None:
    """Return the slowest path between registers of a report of nextpnr, or None if it has none.

    Parameters
    ----------
    report
        nextpnr's JSON report.
    cells
        Cells of the netlist that nextpnr read, in Yosys' JSON: their attributes hold lines of the text.
    verilog
        Text that the netlist was made from.
    """
    paths = [path for path in report["critical_paths"] if "edge" in path["from"] and "edge" in path["to"]]
    if not paths:
        return None
    steps = max((path["path"] for path in paths), key=lambda steps: sum(step["delay"] for step in steps))
    starts = [match.start() for match in re.finditer(r"^module ", verilog, re.MULTILINE)]
    names = re.findall(r"^module (\w+)", verilog, re.MULTILINE)
    lines = [verilog.count("\n", 0, start) + 1 for start in starts]
    modules: list[str] = []
    for step in steps:
        cell = cells.get(step["to"]["cell"].partition("$")[0], {})
        for line in _LINE.findall(cell.get("attributes", {}).get("src", "")):
            name = names[bisect_right(lines, int(line)) - 1]
            if modules[-1:] != [name]:
                modules.append(name)
    return CriticalPath(
        start=_net(steps[0]["from"]["cell"]),
        end=_net(steps[-1]["to"]["cell"]),
        modules=tuple(modules),
        levels=sum(step["type"] == "logic" for step in steps),
        logic_ns=round(sum(step["delay"] for step in steps if step["type"] != "routing"), 3),
        routing_ns=round(sum(step["delay"] for step in steps if step["type"] == "routing"), 3),
    )


def _net(cell: str) -> str:
    return _MADE_UP.sub("", cell)
