"""The study of ``cdu fpga``: a unit and its blocks placed and routed on an FPGA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdu_spec.config import CduConfig
from cdu_synth.area.block_selection import check_blocks, generated
from cdu_synth.area.provenance import provenance
from cdu_tools import yosys
from cdu_tools.parallel import largest_first
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report

from cdu_fpga import fpga, fpga_devices, fpga_report, nextpnr

#: Default seed of the placement.
SEED = 1


@dataclass(frozen=True)
class PlacementSettings:
    """Settings of an FPGA placement. UserError for settings that are not allowed.

    Parameters
    ----------
    config, blocks, yosys
        Those of :class:`cdu_synth.area.synthesise_blocks.SynthesisSettings`.
    part
        Name of a family, whose smallest device that a block fits is used, or of a device.
    speed
        Speed grade; None for the slowest of the family.
    seed
        Seed of the placement; equal seeds give equal results.
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
    """Report LUTs, flip-flops, DSPs, block RAMs and frequency of blocks: ``report.json`` and ``report.md``.

    Parameters
    ----------
    settings
        Settings of the run.
    command
        Command line that the report states.
    progress
        Receives the resources of every block.

    Raises MissingToolError if Yosys or nextpnr is missing; a block that fits no device has a row that says so.
    """
    nextpnr.version(fpga_devices.target(settings.part, settings.speed).family.tool)
    made = generated(settings.config, settings.blocks)
    return place(settings, {item.name: (item.top, item.verilog) for item in made}, command, progress)


def place(
    settings: PlacementSettings, designs: Mapping[str, tuple[str, str]], command: str, progress: Progress | None = None
) -> Report:
    """Do :func:`place_blocks` for any designs, given as top module and Verilog-2005 text by name."""
    shown = progress or Silent()
    target = fpga_devices.target(settings.part, settings.speed)
    tool = {target.family.tool: nextpnr.version(target.family.tool)}
    build = yosys.engine(settings.yosys)

    def placement_of(name: str) -> fpga.FpgaPlacement:
        top, verilog = designs[name]
        placement = fpga.place_and_route(verilog, top, target, settings.seed, build)
        found = placement.problem or f"{placement.mhz:.1f} MHz on {placement.device}"
        shown.say(f"{name}: {placement.used['lut4']} LUT4, {placement.used['flip_flops']} flip-flops, {found}")
        shown.step()
        return placement

    shown.begin("placing and routing", len(designs))
    found = largest_first(placement_of, [*designs], lambda name: len(designs[name][1]))
    placements = dict(zip(designs, found, strict=True))
    made_with = provenance(settings.config, command, build.tools | tool, blocks=designs)
    return fpga_report.of_content(fpga_report.report(placements, made_with, target, settings.seed))
