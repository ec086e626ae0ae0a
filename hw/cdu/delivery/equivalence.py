"""Script by which Yosys proves a mapped netlist equal to the delivered Verilog."""

from __future__ import annotations

_TEXT = """\
# Proves that netlist.v does what {name}.v does: yosys -s {name}_equiv.ys
# netlist.v is the mapped netlist of {top}, cells.lib the Liberty file of its cells, both in this folder. Registers must have
# kept their names; gates need not. Ports are compared; outputs and registers are proven equal in every cycle if they were equal
# before: what depends on a register that was moved, merged, removed or encoded anew stays unproven, and the script fails.
# A proof sees no clocks: these cells make the value of a register depend on its clock.
read_verilog -icells <<EOT
(* techmap_celltype = "$dff" *)
module word #(parameter WIDTH = 1, parameter CLK_POLARITY = 1) (input CLK, input [WIDTH-1:0] D, output [WIDTH-1:0] Q);
  \\$dff #(.WIDTH(WIDTH), .CLK_POLARITY(1)) kept (.CLK(CLK), .D(D ^ {{WIDTH{{CLK ^ CLK_POLARITY[0]}}}}), .Q(Q));
endmodule
(* techmap_celltype = "$_DFF_P_" *)
module rising (input C, input D, output Q);
  \\$_DFF_P_ kept (.C(C), .D(D ^ ~C), .Q(Q));
endmodule
(* techmap_celltype = "$_DFF_N_" *)
module falling (input C, input D, output Q);
  \\$_DFF_P_ kept (.C(C), .D(D ^ C), .Q(Q));
endmodule
EOT
design -stash clocks
read_verilog {name}.v
hierarchy -check -top {top}
proc
flatten
memory
opt_clean
rename -hide w:* t:$*ff* %co1:+[Q] w:* %i %d
async2sync
dffunmap
techmap -max_iter 1 -map %clocks
opt_clean
rename {top} verilog
design -stash verilog
read_liberty -ignore_miss_func cells.lib
read_verilog netlist.v
hierarchy -check -top {top}
proc
flatten
check -assert
async2sync
dffunmap
techmap -max_iter 1 -map %clocks
opt_clean
rename {top} netlist
design -stash netlist
design -copy-from verilog verilog
design -copy-from netlist netlist
miter -equiv verilog netlist same_ports
delete same_ports
equiv_make verilog netlist equal
hierarchy -top equal
equiv_simple
equiv_induct
equiv_status -assert
"""


def equivalence(name: str, top: str) -> str:
    """Return the text of NAME_equiv.ys."""
    return _TEXT.format(name=name, top=top)
