"""``cdu synth --fpga``: a unit and its blocks placed and routed on an FPGA."""

from __future__ import annotations

import os
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from cdu_spec.config import CduConfig

from cdu_cli.options import output_directory

if TYPE_CHECKING:
    from cdu.delivery.generator import Generated
    from cdu_synth.fpga.fpga import Placement

FpgaOption = Annotated[
    str | None,
    typer.Option(
        "--fpga",
        help="Place and route on an FPGA instead of mapping onto a cell library: ecp5 (the smallest that fits), ecp5-5g, or a "
        "device such as LFE5U-45F. --pdk, --clock-ns and --recipe do not apply.",
    ),
]
SpeedOption = Annotated[int | None, typer.Option("--speed", help="Speed grade of the FPGA. Default: the slowest.")]
#: nextpnr's is a signed number of 32 bits.
_MAX_SEED = (1 << 31) - 1
SeedOption = Annotated[
    int,
    typer.Option("--seed", help="Where placement on the FPGA starts; equal seeds give equal results.", min=0, max=_MAX_SEED),
]


def place_and_route(
    output: Path, config: CduConfig, blocks: list[str | None], name: str, speed: int | None, seed: int, yosys_build: str
) -> dict[str, Any]:
    """Put blocks (None: the unit) onto an FPGA, write report.json and report.md into ``output``, and return the report.

    Raises UserError for bad input and for a program that is not installed.
    """
    from cdu.delivery import generator
    from cdu_synth.fpga import fpga, fpga_devices, fpga_report, nextpnr
    from cdu_tools import yosys
    from rich.console import Console

    target = fpga_devices.target(name, speed)
    nextpnr.version(target.family.tool)
    build = yosys.engine(yosys_build)
    folder = output_directory(output)
    made = [generator.generate(config, block) for block in blocks]

    def placement_of(item: Generated) -> Placement:
        placement = fpga.place_and_route(item.verilog, item.name, target, seed, build)
        found = placement.problem or f"{placement.mhz:.1f} MHz on {placement.device}"
        typer.echo(f"{item.name}: {placement.used['lut4']} LUT4, {placement.used['flip_flops']} flip-flops, {found}", err=True)
        return placement

    # The programs run in processes of their own, so threads suffice; the largest go first, so that none is left for the end.
    largest_first = sorted(made, key=lambda item: -len(item.verilog))
    waiting = Console(stderr=True).status(f"placing and routing {', '.join(item.name for item in made)} ...")
    with waiting, ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip((item.name for item in largest_first), pool.map(placement_of, largest_first), strict=True))
    placements = {item.name: found[item.name] for item in made}
    command = shlex.join(["cdu", *sys.argv[1:]])
    content = fpga_report.report(placements, config, target, seed, command, f"{build.name} {build.version}")
    for path in fpga_report.write(folder, content):
        typer.echo(path)
    return content
