"""Synthesis of generated Verilog with Yosys and ABC onto a standard-cell library."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdu.delivery.memories import Macro
from cdu_tools import yosys

from cdu_synth.area import breakdown, clock_gates, latches
from cdu_synth.area.hierarchy import modules
from cdu_synth.area.opensta import OpenSta
from cdu_synth.area.recipes import RECIPES
from cdu_synth.area.timing import Netlist, Timing
from cdu_synth.library.liberty import LibertyError, Library, contents
from cdu_synth.library.macros import blackboxes, with_macros

#: Paths that the report of a unit lists.
SLOW_PATHS = 10
#: Modules that a result depends on, beside the Verilog and the tools.
SOURCES = (
    *(f"cdu_synth.area.{name}" for name in ("flow", "recipes", "breakdown", "clock_gates", "hierarchy", "latches", "timing")),
    *(f"cdu_synth.library.{name}" for name in ("liberty", "macros", "dont_use")),
)
#: Characters of Verilog from which a module that is used several times is mapped once.
LARGE_MODULE = 10_000
#: Gates that a net may drive before it gets buffers.
FAN_OUT = 10
_BEFORE = "strash\nifraig\nscorr\n"
#: High fan-out is split by buffers, then gates are sized: without this a delay is meaningless.
_AFTER = "\ntopo\nbuffer -N {fan_out}\ntopo\nupsize -D {period}\ndnsize -D {period}\n"

_READ = "read_verilog -lib macros.v\nread_verilog design.v\nhierarchy -check -top {top}\n{boxes}"
_FLAT = "setattr -unset init w:*\n{kept}synth -flatten -top {top}\n"
#: Constants and unused ports are propagated through the boundaries of the rows, one boundary each time, which initial values
#: would prevent. Without this the boundaries double the area of a unit with few modes, with it they cost next to nothing.
_BY_ROW = (
    "proc\nsetattr -unset init w:*\n{kept}synth -flatten -hieropt -top {top}\n"
    "opt -full -hier\nopt -full -hier\nopt -full -hier\n"
    # These optimisations may leave multiplexers of whole words again.
    "techmap\nopt_clean\n"
)
_REGISTERS = "{latches}{gates}dfflibmap {libraries}\nopt_clean\ndesign -save prepared\n"
_MAP = """\
design -load prepared
abc {libraries} -constr constraints -script {run}.abc
setattr -mod -unset keep_hierarchy *
flatten
opt_clean -purge
delete */t:$scopeinfo
write_json {run}.json
"""


@dataclass(frozen=True)
class Cost:
    """Cost of a module on a library, before layout.

    Parameters
    ----------
    area_um2, ge
        Cell area without macros in um2, and in two-input NANDs of the library.
    flip_flops, clock_gates, cells
        Numbers of cells; the flip-flops and the clock gates are counted among the cells.
    critical_path_ns, start, end, levels
        Slowest path with clock-to-output and setup, the nets where it begins and ends, and its number of cells; 0 and
        empty for a module without paths.
    leakage_uw
        Sum of the cells' leakage, None when the library has none.
    recipe
        Recipe of :data:`RECIPES` that gave this cost.
    macros, macros_um2
        Number of memories that are macros, and their area.
    shares
        Rows of the breakdown, which add up to this netlist; empty unless the modules of the rows were kept.
    slow_paths
        Up to :data:`SLOW_PATHS` slowest paths, to as many registers or ports; empty unless the modules of the rows were kept.
    """

    area_um2: float
    ge: float
    flip_flops: int
    clock_gates: int
    cells: int
    critical_path_ns: float
    start: str
    end: str
    levels: int
    leakage_uw: float | None
    recipe: str
    macros: int = 0
    macros_um2: float = 0.0
    shares: tuple[breakdown.Share, ...] = ()
    slow_paths: tuple[breakdown.SlowPath, ...] = ()

    @property
    def mhz(self) -> float:
        """Return the highest clock frequency in MHz, 0 without a path."""
        return 1e3 / self.critical_path_ns if self.critical_path_ns else 0.0


def synthesise(
    verilog: str,
    top: str,
    library: Library,
    clock_ns: float,
    build: yosys.Engine | None = None,
    directory: Path | None = None,
    recipes: Sequence[str] = tuple(RECIPES),
    *,
    by_row: bool = False,
    gated: bool = True,
    sta: OpenSta | None = None,
) -> dict[str, Cost]:
    """Return the costs of the module ``top`` of a Verilog text, by recipe.

    Parameters
    ----------
    verilog
        Verilog-2005 text.
    top
        Name of the module; everything in it is flattened. A large module with several instances (a lane of several CDUs) is
        mapped once and used everywhere, which makes large arrays feasible; nothing is optimised across its boundary.
    library
        Cells to map onto.
    clock_ns
        Period in ns for which gates are sized; a goal that may be missed.
    build
        The Yosys to use; default: the pinned one, whose netlist is the same on every machine.
    directory
        Existing folder in which scripts and netlists are kept (``RECIPE.json``); default: a temporary one.
    recipes
        Names from :data:`RECIPES`.
    by_row
        Whether to map the modules of the rows of :mod:`cdu_synth.area.breakdown` one by one, so that the result has
        :attr:`Cost.shares`.
    gated
        Whether registers with an enable get a gated clock where the library has a cell for that
        (:mod:`cdu_synth.area.clock_gates`).
    sta
        Program that times the slowest path; default: :class:`~cdu_synth.area.timing.Timing`.

    Raises
    ------
    yosys.YosysError
        if Yosys does not accept the text.
    """
    found = clock_sweep(verilog, top, library, [clock_ns], build, directory, recipes, by_row=by_row, gated=gated, sta=sta)
    return found[clock_ns]


def clock_sweep(
    verilog: str,
    top: str,
    library: Library,
    clocks_ns: Sequence[float],
    build: yosys.Engine | None = None,
    directory: Path | None = None,
    recipes: Sequence[str] = tuple(RECIPES),
    *,
    by_row: bool = False,
    gated: bool = True,
    sta: OpenSta | None = None,
    macros: Sequence[Macro] = (),
) -> dict[float, dict[str, Cost]]:
    """Return the costs for several clock periods, by period and recipe; the text is read and optimised once.

    Parameters and errors are those of :func:`synthesise`; with several periods the netlists are ``RECIPE_PERIODns.json``.
    ``macros`` are the macros that the text instantiates; OpenSTA does not know them.
    """
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="cdu-synth-") as folder:
            chosen: dict[str, Any] = {"by_row": by_row, "gated": gated, "sta": sta, "macros": macros}
            return clock_sweep(verilog, top, library, clocks_ns, build, Path(folder), recipes, **chosen)
    overhead = register_overhead_ns(library)
    options = [f"-liberty cells{index}.lib" for index in range(len(library.files))]
    libraries = " ".join(options + [f"-dont_use {name}" for name in library.dont_use])
    several = len(clocks_ns) > 1
    runs = {
        (clock_ns, recipe): f"{recipe}_{clock_ns:g}ns" if several else recipe for clock_ns in clocks_ns for recipe in recipes
    }
    latched = latches.gate_module(verilog)
    files = {
        **({latches.FILE: latches.techmap(library, latched)} if latched else {}),
        "design.v": verilog,
        "macros.v": blackboxes(macros),
        "constraints": f"set_driving_cell {_driver(library)}\n",
        clock_gates.FILE: clock_gates.techmap(),
        **{f"cells{index}.lib": contents(path) for index, path in enumerate(library.files)},
    }
    for (clock_ns, recipe), run in runs.items():
        period = max(round(1e3 * (clock_ns - overhead)), 1)
        files[f"{run}.abc"] = (_BEFORE + RECIPES[recipe] + _AFTER).format(period=period, fan_out=FAN_OUT)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    kept = dict.fromkeys(repeated_modules(verilog) + (breakdown.row_modules(verilog, top) if by_row else []))
    keep = "".join(f"setattr -mod -set keep_hierarchy 1 {name}\n" for name in kept)
    maps = (_MAP.format(run=run, libraries=libraries) for run in runs.values())
    prepare = (_READ + (_BY_ROW if by_row else _FLAT) + _REGISTERS).format(
        top=top,
        kept=keep,
        libraries=libraries,
        gates=clock_gates.commands(library) if gated else "",
        boxes=latches.KEPT.format(module=latched) if latched else "",
        latches=latches.COMMANDS if latched else "",
    )
    script = prepare + "".join(maps)
    yosys.run(script, directory, build or yosys.engine(yosys.GENERATOR))
    found: dict[float, dict[str, Cost]] = {clock_ns: {} for clock_ns in clocks_ns}
    library = with_macros(library, macros)
    for (clock_ns, recipe), run in runs.items():
        netlist = Netlist.of(json.loads((directory / f"{run}.json").read_text(encoding="utf-8")), top)
        found[clock_ns][recipe] = _cost(netlist, library, recipe, directory, sta, (verilog, top) if by_row else None)
    return found


def repeated_modules(verilog: str) -> list[str]:
    """Return the modules with several instances in a text that have :data:`LARGE_MODULE` characters or more with all inside."""
    known = modules(verilog)

    def size(name: str) -> int:
        return known[name].characters + sum(size(used) for _, used in known[name].instances)

    places = Counter(used for module in known.values() for _, used in module.instances)
    return [name for name, count in places.items() if count > 1 and size(name) >= LARGE_MODULE]


def choose(costs: dict[str, Cost], clock_ns: float) -> Cost:
    """Return the smallest result that meets the clock, or the fastest if none does."""
    meeting = [cost for cost in costs.values() if cost.critical_path_ns <= clock_ns]
    if meeting:
        return min(meeting, key=lambda cost: cost.area_um2)
    return min(costs.values(), key=lambda cost: (cost.critical_path_ns, cost.area_um2))


def register_overhead_ns(library: Library) -> float:
    """Return the delay in ns of the smallest flip-flop at the greatest fan-out that buffering leaves, plus its setup time."""
    load = FAN_OUT * max(library.gate.capacitances.values())
    found = []
    for cell in library.cells.values():
        launches = [arc for arc in cell.arcs if arc.kind == "rising_edge" and arc.target in cell.functions]
        if cell.flip_flop and cell.usable and launches and cell.setups:
            delays = [table.at(0.0, load) for arc in launches for table in arc.delays if table]
            setups = [table.at(0.0, 0.0) for arc in cell.setups for table in arc.delays if table]
            found.append((cell.area, (max(delays) + max(setups)) * library.time_ns))
    if not found:
        raise LibertyError(f"library {library.name} has no flip-flop with setup times: use another one")
    return min(found)[1]


def _driver(library: Library) -> str:
    """Return the cell that stands for the flip-flops before the logic: the second smallest buffer, or the only one."""
    buffers = sorted(
        (cell.area, name)
        for name, cell in library.cells.items()
        if cell.usable and cell.computes(lambda value: value, inputs=1)
    )
    if not buffers:
        raise LibertyError(f"library {library.name} has no buffer: use another one")
    return buffers[min(1, len(buffers) - 1)][1]


def _cost(
    netlist: Netlist, library: Library, recipe: str, directory: Path, sta: OpenSta | None, rows_of: tuple[str, str] | None
) -> Cost:
    """Return the cost of a netlist, with its rows for the Verilog and top module ``rows_of``."""
    unmapped = sorted({kind for kind, _ in netlist.cells} - set(library.cells))
    if unmapped:
        raise LibertyError(f"library {library.name} has no cells for {', '.join(unmapped)}: use a more complete one")
    every = [library.cells[kind] for kind, _ in netlist.cells]
    used, macros = [cell for cell in every if not cell.macro], [cell for cell in every if cell.macro]
    area = sum(cell.area for cell in used)
    leakages = [cell.leakage_uw for cell in used]
    timing = Timing(netlist, library) if rows_of or not sta else None
    paths = timing.slowest_paths(SLOW_PATHS) if timing else []
    path = sta.slowest(netlist, library, directory) if sta else next(iter(paths), None)
    return Cost(
        area_um2=round(area, 3),
        ge=round(area / library.gate.area, 1),
        flip_flops=sum(cell.flip_flop for cell in used),
        clock_gates=sum(cell.clock_gate is not None for cell in used),
        cells=len(used),
        critical_path_ns=round(path.delay_ns, 4) if path else 0.0,
        start=path.start if path else "",
        end=path.end if path else "",
        levels=path.cells if path else 0,
        leakage_uw=None if None in leakages else round(sum(filter(None, leakages)), 3),
        recipe=recipe,
        macros=len(macros),
        macros_um2=round(sum(macro.area for macro in macros), 3),
        shares=breakdown.shares(netlist, library) if rows_of else (),
        slow_paths=tuple(breakdown.slow_path(one, netlist, *rows_of) for one in paths) if rows_of else (),
    )
