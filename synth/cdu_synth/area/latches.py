"""Latch arrays (:data:`cdu.delivery.memories.LATCHES`): their latches and clock gates as cells of a library."""

from __future__ import annotations

import re

from cdu.delivery.memories import CLOCK_GATE

from cdu_synth.library.liberty import LibertyError, Library

#: Techmap file of :func:`commands`.
FILE = "latches.v"
_LATCH = """\
(* techmap_celltype = "$_DLATCH_P_" *)
module latch(input E, D, output Q);
  {name} _TECHMAP_REPLACE_ (.{pins.data}(D), .{pins.enable}(E), .{pins.output}(Q));
endmodule
"""
_GATE = """\
module {module}(input clk, enable, output gated);
  {name} _TECHMAP_REPLACE_ (.{pins.clock}(clk), .{pins.enable}(enable), .{pins.output}(gated){test});
endmodule
"""


def gate_module(verilog: str) -> str | None:
    """Return the module of the gates for the clocks of latches in a Verilog text, None for one without latches."""
    found = re.search(rf"^module (\w+{CLOCK_GATE}) \(", verilog, re.MULTILINE)
    return found[1] if found else None


def techmap(library: Library, module: str) -> str:
    """Return Verilog for Yosys' ``techmap``; ``module`` gates clocks. LibertyError for a library without latches or gates."""
    latch, gate = library.latch, library.clock_gate
    if latch is None or latch.latch is None or gate is None or gate.clock_gate is None:
        raise LibertyError(f"library {library.name} has no latch or no clock gate for memories of latches: leave them out")
    pins = gate.clock_gate
    test = f", .{pins.test}(1'b0)" if pins.test else ""
    return _LATCH.format(name=latch.name, pins=latch.latch) + _GATE.format(module=module, name=gate.name, pins=pins, test=test)


#: Yosys commands before anything is flattened, and commands for a netlist of gates that are not mapped yet.
KEPT, COMMANDS = "blackbox {module}\n", f"techmap -map {FILE}\nopt_clean\n"
