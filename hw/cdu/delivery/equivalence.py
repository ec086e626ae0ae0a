"""Script by which Yosys proves a mapped netlist equal to the delivered Verilog."""

from __future__ import annotations

_TEXT = """\
# Proves that netlist.v does what {name}.v does: yosys -s {name}_equiv.ys
# netlist.v is the mapped netlist of {top}, cells.lib the Liberty file of its cells, both in this folder. Registers must have
# kept their names; gates need not. Outputs and registers are proven equal in every cycle if they were equal before: what
# depends on a register that was moved, merged, removed or encoded anew stays unproven, and the script fails.
read_verilog {name}.v
hierarchy -check -top {top}
proc
flatten
memory
async2sync
dffunmap
opt_clean
rename -hide w:* t:$dff %co1:+[Q] w:* %i %d
rename {top} verilog
design -stash verilog
read_liberty -ignore_miss_func cells.lib
read_verilog netlist.v
hierarchy -check -top {top}
proc
flatten
async2sync
dffunmap
opt_clean
rename {top} netlist
design -stash netlist
design -copy-from verilog verilog
design -copy-from netlist netlist
equiv_make verilog netlist equal
hierarchy -top equal
equiv_simple
equiv_induct
equiv_status -assert
"""


def equivalence(name: str, top: str) -> str:
    """Return the text of NAME_equiv.ys."""
    return _TEXT.format(name=name, top=top)
