"""The study of ``cdu fpga``: a unit and its blocks placed and routed on an FPGA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdu.delivery.generator import Generated
from cdu_spec.config import CduConfig
from cdu_tools import yosys
from cdu_tools.parallel import largest_first
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report

from cdu_synth.area.provenance import provenance
from cdu_synth.area.wanted import check_blocks, generated
from cdu_synth.fpga import fpga, fpga_devices, fpga_report, nextpnr

#: Where placement starts unless a seed is given.
SEED = 1


@dataclass(frozen=True)
class PlacementSettings:
    """What is placed, and on what. UserError for what is not allowed.

    Parameters
    ----------
    config, blocks, yosys
        As of :class:`cdu_synth.area.synthesise_blocks.SynthesisSettings`.
    part
        Name of a family, of which the smallest device that a block fits is taken, or of a device.
    speed
        Speed grade; None is the slowest of the family.
    seed
        Where placement starts; equal seeds give equal results.
    """

    config: CduConfig
    blocks: Sequence[str] = ()
    part: str = fpga_devices.ECP5.name
    speed: int | None = None
    seed: int = SEED
    yosys: str = yosys.GENERATOR

    def __post_init__(self) -> None:
        check_blocks(self.blocks)
        fpga_devices.target(self.part, self.speed)


def place_blocks(settings: PlacementSettings, command: str, progress: Progress | None = None) -> Report:
    """LUTs, flip-flops, DSPs, block RAMs and frequency of blocks: ``report.json`` and ``report.md``.

    Parameters
    ----------
    settings
        What is placed.
    command
        What the report says that it was made by.
    progress
        Is told what every block takes.

    Raises MissingToolError when Yosys or nextpnr is not here; a block that fits no device is a row that says so.
    """
    shown = progress or Silent()
    target = fpga_devices.target(settings.part, settings.speed)
    tool = {target.family.tool: nextpnr.version(target.family.tool)}
    build = yosys.engine(settings.yosys)
    made = generated(settings.config, settings.blocks)

    def placement_of(item: Generated) -> fpga.Placement:
        placement = fpga.place_and_route(item.verilog, item.top, target, settings.seed, build)
        found = placement.problem or f"{placement.mhz:.1f} MHz on {placement.device}"
        shown.say(f"{item.name}: {placement.used['lut4']} LUT4, {placement.used['flip_flops']} flip-flops, {found}")
        shown.step()
        return placement

    shown.begin("placing and routing", len(made))
    found = largest_first(placement_of, made, lambda item: len(item.verilog))
    placements = {item.name: placement for item, placement in zip(made, found, strict=True)}
    made_with = provenance(settings.config, command, build.tools | tool)
    return fpga_report.of_content(fpga_report.report(placements, made_with, target, settings.seed))
