"""Clock gating: registers that hold under a common condition get no clock, instead of a multiplexer each."""

from __future__ import annotations

from itertools import product

from cdu_synth.library.liberty import Library

#: Number of flip-flops from which a gate costs less than their multiplexers.
LEAST_FLIP_FLOPS = 4
#: Techmap file of :func:`commands`.
FILE = "clock_gates.v"

#: A flip-flop that is reset even without its enable needs the clock for either; all flip-flops of a group share that OR.
_RESET_OR_ENABLE = """\
(* techmap_celltype = "$_SDFFE_P{reset}{value}{enable}_" *)
module sdffe_{reset}{value}{enable} (input D, C, R, E, output Q);
  \\$_SDFFCE_P{reset}{value}P_ _TECHMAP_REPLACE_ (.D(D), .C(C), .R(R), .E({enabled} | {resets}), .Q(Q));
endmodule
"""


def techmap() -> str:
    """Return Verilog for Yosys' ``techmap`` that makes the enable of flip-flops with enable and reset cover the reset."""
    return "".join(
        _RESET_OR_ENABLE.format(
            reset=reset,
            value=value,
            enable=enable,
            enabled="E" if enable == "P" else "~E",
            resets="R" if reset == "P" else "~R",
        )
        for reset, value, enable in product("PN", "01", "PN")
    )


def commands(library: Library) -> str:
    """Return Yosys commands for a netlist of gates that is not mapped yet; none for a library without clock gates.

    The commands read :data:`FILE`.
    """
    cell = library.clock_gate
    if cell is None or cell.clock_gate is None:
        return ""
    gate = cell.clock_gate
    pins = f"{gate.enable}:{gate.clock}:{gate.output}"
    tied = f" -tie_lo {gate.test}" if gate.test else ""
    return (
        f"techmap -map {FILE}\nsimplemap\nopt_merge\nopt_clean\n"
        f"clockgate -pos {cell.name} {pins}{tied} -min_net_size {LEAST_FLIP_FLOPS}\nopt_clean\n"
    )
