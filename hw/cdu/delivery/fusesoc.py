"""The delivered files as a core of FuseSoC (CAPI2), with targets that any of its users knows how to run."""

from __future__ import annotations

import json

#: Vendor of every core.
VENDOR = "cdu"

_HEAD = """\
CAPI=2:
name: {vlnv}
description: "Compression/decompression unit for DNN training accelerators: {name}"

filesets:
  rtl:
    files: [{name}.v]
    file_type: verilogSource-2005
  waivers:
    files: [{name}.vlt]
    file_type: vlt
  script:
    files: [{name}_synth.tcl: {{copyto: {name}_synth.tcl}}]
    file_type: user
{bench}
targets:
  default: &default
    filesets: [rtl]
    toplevel: {top}

  lint:
    <<: *default
    description: Verilator's lint with all its warnings
    filesets: [waivers, rtl]
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
{sim}
  synth:
    <<: *default
    description: Yosys for an FPGA of the family ECP5, to see that it can be synthesised
    filesets: [rtl, script]
    flow: generic
    flow_options:
      tool: yosys
      arch: ecp5
      output_format: json
      yosys_template: {name}_synth.tcl
"""
#: Plain commands of Yosys, which builds of it without Tcl run, too, when the first line is left out.
_SYNTH = """\
yosys -import
read_verilog {source}
synth_ecp5 -top {top} -json {core}.json
"""
_BENCH = """\
  bench:
    files: [{name}_tb.sv]
    file_type: systemVerilogSource
"""
_SIM = """
  sim:
    <<: *default
    description: The unit comes out of reset and its registers answer
    filesets: [rtl, bench]
    toplevel: {top}_tb
    flow: sim
    flow_options:
      tool: icarus
      iverilog_options: [-g2012]
"""


def vlnv(name: str, version: str, unit: bool) -> str:
    """Vendor, library, name and version of a core: units and blocks are two libraries."""
    return f"{VENDOR}:{'units' if unit else 'blocks'}:{name}:{version}"


def synth_script(name: str, top: str, version: str, unit: bool) -> str:
    """Text of NAME_synth.tcl, the script of target ``synth``, which runs in the folder that FuseSoC makes for it."""
    core = vlnv(name, version, unit).replace(":", "_")
    return _SYNTH.format(source=f"src/{core}/{name}.v", top=top, core=core)


def core_file(name: str, top: str, version: str, unit: bool) -> str:
    """Text of NAME.core: targets ``lint`` and ``synth``, and ``sim`` for a unit, which has NAME_tb.sv beside it."""
    names = {"name": name, "top": top, "vlnv": json.dumps(vlnv(name, version, unit))}
    return _HEAD.format(**names, bench=_BENCH.format(**names) if unit else "", sim=_SIM.format(**names) if unit else "")
