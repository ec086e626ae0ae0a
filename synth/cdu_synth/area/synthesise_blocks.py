"""The study of ``cdu synth``: cost of a unit and its blocks on a standard-cell library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cdu.delivery.generator import Generated
from cdu.delivery.memories import Memories
from cdu_spec.config import CduConfig
from cdu_tools import yosys
from cdu_tools.errors import UserError
from cdu_tools.parallel import largest_first
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report

from cdu_synth.area import breakdown, flow, opensta, report
from cdu_synth.area.block_selection import check_blocks, generated
from cdu_synth.area.provenance import provenance
from cdu_synth.area.recipes import CLOCK_NS, RECIPES, check_clock, check_recipes
from cdu_synth.library import pdk


@dataclass(frozen=True)
class SynthesisSettings:
    """Settings of a synthesis run. UserError for settings that are not allowed.

    Parameters
    ----------
    config
        Configuration of the unit.
    blocks
        Names from :data:`cdu.delivery.blocks.BLOCKS`; empty: all of them, and the unit.
    pdk
        Name of a cell library, or path of its file.
    clocks_ns
        Target periods in ns; the first is that of the report, several also give a table of area against period.
    yosys
        Name of the build of Yosys.
    recipes
        Names from :data:`cdu_synth.area.recipes.RECIPES`; the best result is reported.
    sta
        ``opensta``, ``builtin``, or ``auto``: OpenSTA where it is installed.
    clock_gates
        Whether registers with an enable get a gated clock (:mod:`cdu_synth.area.clock_gates`).
    memories
        Implementation of the memories. Macros are timed by the built-in timing only.
    """

    config: CduConfig
    blocks: Sequence[str] = ()
    pdk: str = pdk.DEFAULT
    clocks_ns: Sequence[float] = (CLOCK_NS,)
    yosys: str = yosys.GENERATOR
    recipes: Sequence[str] = tuple(RECIPES)
    sta: str = opensta.AUTO
    clock_gates: bool = True
    memories: Memories = field(default_factory=Memories)

    def __post_init__(self) -> None:
        check_blocks(self.blocks)
        check_recipes(self.recipes)
        if self.memories.macros and self.sta == opensta.OPENSTA:
            raise UserError("--sta opensta does not know the macros of --memories: use --sta builtin")
        for clock_ns in self.clocks_ns:
            check_clock(clock_ns)


def synthesise_blocks(settings: SynthesisSettings, command: str, progress: Progress | None = None) -> Report:
    """Report area, critical path and leakage of blocks: ``report.json``, ``report.md``, ``area.png``, perhaps ``sweep.png``.

    Parameters
    ----------
    settings
        Settings of the run; several periods give ``sweep.png``.
    command
        Command line that the report states.
    progress
        Receives the cost of every block.

    Raises MissingToolError if the library or a program is missing, :class:`cdu_tools.yosys.YosysError` if it fails.
    """
    shown = progress or Silent()
    macros = settings.memories.macros
    timer, library = None if macros else opensta.choose(settings.sta), pdk.find(settings.pdk).read()
    build, periods = yosys.engine(settings.yosys), settings.clocks_ns
    made = generated(settings.config, settings.blocks, settings.memories)
    for line in settings.memories.unused([item.manifest for item in made]):
        shown.say(line)

    def costs_of(item: Generated) -> dict[float, flow.Cost]:
        by_row = item.name == settings.config.unit_name or item.name in breakdown.UNITS
        options: dict[str, Any] = {"recipes": settings.recipes, "by_row": by_row, "gated": settings.clock_gates, "sta": timer}
        used = [macro for macro in macros if macro.macro in item.verilog]
        found = flow.clock_sweep(item.verilog, item.top, library, periods, build, **options, macros=used)
        costs = {period: flow.choose(of_recipes, period) for period, of_recipes in found.items()}
        for period, cost in costs.items():
            size = f"{cost.ge / 1e3:.2f} kGE, {cost.flip_flops} flip-flops, {cost.clock_gates} clock gates"
            shown.say(f"{item.name} for {period:g} ns: {size}, {cost.critical_path_ns:.2f} ns")
        shown.step()
        return costs

    shown.begin("synthesising", len(made))
    found = largest_first(costs_of, made, lambda item: len(item.verilog))
    costs = {item.name: of_periods for item, of_periods in zip(made, found, strict=True)}
    first = {name: of_periods[periods[0]] for name, of_periods in costs.items()}
    made_with = provenance(settings.config, command, build.tools, library, periods[0], settings.recipes, costs)
    return report.of_content(report.report(first, made_with, library, timer, costs))
