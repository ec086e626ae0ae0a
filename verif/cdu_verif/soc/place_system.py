"""The system on an FPGA: what processor, interconnect, memory, unit and engine take together."""

from __future__ import annotations

from cdu_spec.config import CduConfig
from cdu_synth.area.provenance import provenance
from cdu_synth.fpga import fpga, fpga_devices, fpga_report, nextpnr
from cdu_synth.fpga.place_blocks import SEED
from cdu_tools import yosys
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report

from cdu_verif.soc import system


def place_system(config: CduConfig, part: str, command: str, progress: Progress | None = None) -> Report:
    """LUTs, flip-flops, DSPs, block RAMs and frequency of a system, its memory in block RAM: ``report.json`` and ``report.md``.

    Parameters
    ----------
    config
        One of :func:`cdu_verif.soc.system.configuration`.
    part
        Name of a family, of which the smallest device that the system fits is taken, or of a device.
    command
        What the report says that it was made by.
    progress
        Is told what the system takes.

    Raises UserError for an unknown part, MissingToolError when Yosys, nextpnr or the processor is not here; a system that fits
    no device is a row that says so.
    """
    shown = progress or Silent()
    target = fpga_devices.target(part, None)
    tool = {target.family.tool: nextpnr.version(target.family.tool)}
    build = yosys.engine(yosys.GENERATOR)
    text = "\n".join(system.verilog(config).values())
    shown.say("placing and routing the system (half an hour)")
    placement = fpga.place_and_route(text, system.TOP, target, SEED, build)
    made_with = provenance(config, command, build.tools | tool)
    return fpga_report.of_content(fpga_report.report({system.TOP: placement}, made_with, target, SEED))
