"""``cdu soc``: a system with a RISC-V processor that uses the unit."""

from __future__ import annotations

from typing import Annotated

import typer

from cdu_cli.options import ConfigOption, JsonOption, OutputOption, SetOption, configuration
from cdu_cli.progress import ProgressBar, command_line, publish

PartOption = Annotated[
    str | None,
    typer.Option(
        "--part", help="Place the system on an FPGA as well, the smallest of a family that it fits, or a device: {parts}."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu soc -o build/soc")(soc)


def soc(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    part: PartOption = None,
    json_file: JsonOption = None,
) -> None:
    """Simulate a processor, memory, and a unit behind its DMA engine: the driver in C compresses and decompresses activations.

    Writes report.md and report.json, and with --part both in `fpga` as well. Exit code 1 when a byte in memory is not the
    golden model's. Needs Verilator, a compiler for RISC-V and the package with the processor (extra `soc`), and --part what
    `cdu fpga` needs.
    """
    chosen = configuration(config, settings)
    from cdu_fpga.place_blocks import PlacementSettings, place
    from cdu_soc import system
    from cdu_soc.run_tasks import recorded_report

    placed = PlacementSettings(system.configuration(chosen), part=part) if part is not None else None
    with ProgressBar() as shown:
        report = recorded_report(chosen, command_line(), shown)
    publish(report, output, json_file)
    if placed:
        with ProgressBar() as shown:
            shown.say("placing and routing the system (half an hour)")
            report = place(placed, system.design(placed.config), command_line(), shown)
        publish(report, output / "fpga")
