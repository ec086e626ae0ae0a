"""Latch arrays (:data:`cdu.delivery.memories.LATCHES`): their latches and clock gates as cells of a library."""

from __future__ import annotations

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


def has_latches(verilog: str) -> bool:
    """Return whether a Verilog text has latches, with gates for their clocks."""
    return f"module {CLOCK_GATE} (" in verilog


def techmap(library: Library) -> str:
    """Return Verilog for Yosys' ``techmap``. LibertyError for a library without latches or clock gates."""
    latch, gate = library.latch, library.clock_gate
    if latch is None or latch.latch is None or gate is None or gate.clock_gate is None:
        raise LibertyError(f"library {library.name} has no latch or no clock gate for memories of latches: leave them out")
    pins = gate.clock_gate
    test = f", .{pins.test}(1'b0)" if pins.test else ""
    return _LATCH.format(name=latch.name, pins=latch.latch) + _GATE.format(
        module=CLOCK_GATE, name=gate.name, pins=pins, test=test
    )


#: Yosys commands before anything is flattened, and commands for a netlist of gates that are not mapped yet.
KEPT, COMMANDS = f"blackbox {CLOCK_GATE}\n", f"techmap -map {FILE}\nopt_clean\n"
