"""The study of ``cdu place``: blocks placed in rows of cells, and their clock with the wires between the cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cdu.delivery.generator import Generated
from cdu_spec.config import CduConfig
from cdu_synth.area.block_selection import check_blocks, generated
from cdu_synth.area.kept_netlist import kept_netlist
from cdu_synth.area.provenance import provenance
from cdu_synth.area.recipes import CLOCK_NS, check_clock, check_recipes
from cdu_synth.area.timing import Netlist, Timing
from cdu_synth.library import pdk
from cdu_synth.library.liberty import Library
from cdu_tools import yosys
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report

from cdu_placement import placement_report, placer
from cdu_placement.buffers import rebuffered
from cdu_placement.legalise import settled
from cdu_placement.placed import Placed
from cdu_placement.placer import Placement
from cdu_placement.rows import CellRows, rows_of
from cdu_placement.sizing import resized
from cdu_placement.spef import spef
from cdu_placement.wires import Routed, wires_of

#: Default share of the die that cells take.
USE = 0.7
#: Greatest number of times that buffers and gates are made for the wires, and the greatest ratio of periods worth another.
_PASSES, _WORTH = 8, 0.99
#: Default recipe by which cells are mapped before they are placed.
RECIPE = "balanced"


@dataclass(frozen=True)
class CellPlacementSettings:
    """Settings of a placement. UserError for settings that are not allowed.

    Parameters
    ----------
    config, blocks, pdk, yosys
        Those of :class:`cdu_synth.area.synthesise_blocks.SynthesisSettings`; at least one block.
    clock_ns
        Period in ns for which gates are mapped.
    recipe
        One of :data:`cdu_synth.area.recipes.RECIPES`.
    use
        Share of the die that cells take, 0.3 to 0.95.
    ohm_per_um, ff_per_um
        Resistance and capacitance of a wire; None: the values known for the library.
    """

    config: CduConfig
    blocks: Sequence[str]
    pdk: str = pdk.DEFAULT
    clock_ns: float = CLOCK_NS
    yosys: str = yosys.GENERATOR
    recipe: str = RECIPE
    use: float = USE
    ohm_per_um: float | None = None
    ff_per_um: float | None = None

    def __post_init__(self) -> None:
        assert self.blocks, "there is nothing to place"
        check_blocks(self.blocks)
        check_recipes([self.recipe])
        check_clock(self.clock_ns)
        placer.check_use(self.use)


def place_cells(settings: CellPlacementSettings, command: str, progress: Progress | None = None) -> Report:
    """Report die, wires and clock of blocks: ``report.json``, ``report.md``, and for each ``BLOCK.png`` and ``BLOCK.spef``.

    Parameters
    ----------
    settings
        Settings of the run.
    command
        Command line that the report states.
    progress
        Receives the figures of every block.

    Raises MissingToolError if the library, the placer or Yosys is missing, UserError for a library without known rows or
    wires.
    """
    shown = progress or Silent()
    tools = {"coloquinte": placer.version()}
    library, build = pdk.find(settings.pdk).read(), yosys.engine(settings.yosys)
    rows = rows_of(library, settings.ohm_per_um, settings.ff_per_um)
    entries: dict[str, dict[str, Any]] = {}
    files: dict[str, str | bytes] = {}
    for item in generated(settings.config, settings.blocks):
        shown.begin(f"synthesising {item.name} (kept in the cache)")
        netlist = _mapped(item, library, settings, build)
        first, final = _best(netlist, library, rows, settings.use, shown)
        entry = placement_report.entry(netlist, library, _critical_path(netlist, library), first, final)
        entries[item.name] = entry
        die = f"{entry['die_um'][0]:.0f} x {entry['die_um'][1]:.0f} um, {entry['wire_mm']:.0f} mm of wire"
        clocks = f"{entry['without_wires_ns']:.2f} ns without wires, {entry['placed_ns']:.2f} ns with them"
        shown.say(f"{item.name}: {die}, {clocks}, {entry['optimised_ns']:.2f} ns buffered and sized")
        files[f"{item.name}.png"] = placement_report.picture(item.name, final.netlist, library, final.placement)
        files[f"{item.name}.spef"] = spef(item.name, final.netlist, library, rows, final.routed.trees)
    recipes = [settings.recipe]
    made_with = provenance(settings.config, command, build.tools | tools, library, settings.clock_ns, recipes, entries)
    wire = {"ohm_per_um": rows.ohm_per_um, "ff_per_um": rows.ff_per_um}
    return placement_report.of_content(made_with | {"use": settings.use, "wire": wire, "blocks": entries}, files)


def _best(netlist: Netlist, library: Library, rows: CellRows, use: float, shown: Progress) -> tuple[Placed, Placed]:
    """Return a netlist as placed first, and with buffers and gates made for its wires."""

    def wired(cells: Netlist, placement: Placement) -> Placed:
        routed = wires_of(cells, library, rows, placement)
        return Placed(cells, placement, routed, _critical_path(cells, library, routed))

    shown.begin("placing")
    first = wired(netlist, placer.place(netlist, library, rows, use))
    shown.begin("buffering and sizing gates")
    best = first
    # Larger gates make another tree the slowest, hence several passes; cells that make room may lose what a pass gains.
    for _ in range(_PASSES):
        cells, placement = rebuffered(best.netlist, library, rows, best.placement, shown.step)
        cells = resized(cells, library, wires_of(cells, library, rows, placement).wires, shown.step)
        attempt = wired(cells, settled(placement, placer.sites_of(cells, library, rows), rows))
        if attempt.critical_path_ns > _WORTH * best.critical_path_ns:
            return first, min(best, attempt, key=lambda one: one.critical_path_ns)
        best = attempt
    return first, best


def _mapped(item: Generated, library: Library, settings: CellPlacementSettings, build: yosys.Engine) -> Netlist:
    design, _ = kept_netlist(item.verilog, item.top, library, settings.clock_ns, settings.recipe, build)
    return Netlist.of(design, item.top)


def _critical_path(netlist: Netlist, library: Library, routed: Routed | None = None) -> float:
    path = Timing(netlist, library, routed.wires if routed else None).slowest()
    return path.delay_ns if path else 0.0
