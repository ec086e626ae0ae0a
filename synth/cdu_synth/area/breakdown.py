"""Breakdown of a unit's area: its cells by the rows of JPEG-ACT's table of parts (ISCA 2020), and by rows of this unit.

The rows are computed from a netlist whose modules were mapped one by one and flattened afterwards: the name of each cell
contains the path of its instance, so that the rows add up to the netlist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cdu_synth.area.hierarchy import declaration, instances
from cdu_synth.area.timing import Netlist, Path
from cdu_synth.library.liberty import Library

#: Patterns of the instances that make up a row. Cells inside such an instance belong to the row.
ROWS = {
    "SFPR": r"(inverse_)?sfpr\d+",
    "DCT + IDCT": r"i?dct\d+",
    "quantise SH": r"lane\d+\.quantizer",
    "coding (ZVC, BRC, affine codes)": r"lane\d+\.(encoder|decoder)",
    "alignment buffer": r"alignment",
    "collector, splitter": r"collector|distributor|splitter|gatherer",
    "DIVISION and other affine modes": r"lane\d+\.affine|finder|join|ranges|dequantizer\d+",
    "registers, control": r"control",
    "ports": r"(compress|decompress)_(receiver|sender|scale_receiver|scales)",
    "value intake, scale feeders": r"intake|feeder",
    "bypass": r"bypass",
    "MX": r"mx",
}
#: Blocks that have a breakdown of their own, besides the whole unit.
UNITS = ("compressor", "decompressor", "array")
#: Row of everything else.
REST = "rest (job queues, tags, glue)"
#: Parts of the paper's table that this unit does not have.
NOTE = (
    "One module per lane codes ZVC, BRC and affine codes alike, so they share a row. "
    "DIV and RLE of JPEG-BASE are blocks beside the unit and have no row."
)
_PATTERNS = {row: re.compile(rf"(?:.*\.)?(?:{pattern})") for row, pattern in ROWS.items()}


@dataclass(frozen=True)
class Share:
    """Cost of one row: cell area in um2, flip-flops, cells, leakage in uW (None if a cell of the library has none)."""

    row: str
    area_um2: float
    flip_flops: int
    cells: int
    leakage_uw: float | None


@dataclass(frozen=True)
class Station:
    """One stretch of a path: the row, and the path of the instance (empty in the glue between the rows' instances)."""

    row: str
    instance: str


@dataclass(frozen=True)
class End:
    """An end of a path: the net, the module of the Verilog that declares it and the line there, 0 for a generated net."""

    net: str
    module: str
    line: int


@dataclass(frozen=True)
class SlowPath:
    """One of the slowest paths: its total in ns, its number of cells, both ends, and the rows and instances on it."""

    delay_ns: float
    cells: int
    start: End
    end: End
    stations: tuple[Station, ...]


def station(place: str) -> Station:
    """Return the row and instance of cells at a place (``core.compressor.dct0.rows``): the outermost instance of a row."""
    parts = place.split(".")
    for length in range(1, len(parts) + 1):
        path = ".".join(parts[:length])
        for row, pattern in _PATTERNS.items():
            if pattern.fullmatch(path):
                return Station(row, path)
    return Station(REST, "")


def row_modules(verilog: str, top: str) -> list[str]:
    """Return the modules that are instances of rows, whose boundaries must be kept until they are mapped."""
    found = (module for path, module in instances(verilog, top) if station(path).instance == path)
    return list(dict.fromkeys(found))


def shares(netlist: Netlist, library: Library) -> tuple[Share, ...]:
    """Return the rows that a netlist has cells of, in the order of :data:`ROWS`, the rest last; each cell is in one row."""
    cells: dict[str, list[str]] = {row: [] for row in (*ROWS, REST)}
    for (kind, _), place in zip(netlist.cells, netlist.places, strict=True):
        cells[station(place).row].append(kind)
    found = []
    for row, kinds in cells.items():
        used = [library.cells[kind] for kind in kinds if not library.cells[kind].macro]
        leakages = [cell.leakage_uw for cell in used]
        leakage = None if None in leakages else sum(filter(None, leakages))
        if used:
            found.append(Share(row, sum(cell.area for cell in used), sum(cell.flip_flop for cell in used), len(used), leakage))
    return tuple(found)


def stations(places: Iterable[str]) -> tuple[Station, ...]:
    """Return the stations of a path through cells at these places."""
    found: list[Station] = []
    for place in places:
        here = station(place)
        if not found or found[-1] != here:
            found.append(here)
    return tuple(found)


def slow_path(path: Path, netlist: Netlist, verilog: str, top: str) -> SlowPath:
    """Return a path of a netlist with the places of its ends in the Verilog."""
    start, end = (End(net, *declaration(verilog, top, net)) for net in (path.start, path.end))
    return SlowPath(round(path.delay_ns, 4), path.cells, start, end, stations(netlist.places[step] for step in path.steps))
