"""Operators of any widths mean the same when their operands are as wide as Verilog makes them, and lint has nothing to say."""

import itertools
import re

import pytest
from cdu.delivery.full_widths import full_widths
from cdu_tools import verilator, yosys

COMPARING = ("lt", "le", "eq", "ne", "ge", "gt")
TWO = ("add", "sub", "mul", "and", "or", "xor", "xnor", *COMPARING, "shl", "shr", "sshl", "sshr", "shift")
ONE = ("not", "neg", "pos", "logic_not")
WIDTHS = [(3, 1, 5), (1, 3, 3), (5, 4, 2), (4, 4, 4), (2, 5, 1)]

MAPPED = "read_verilog -icells cells.v\ntechmap -map full_widths.v\nopt_clean\nwrite_verilog -noattr mapped.v\n"
#: Both are the same for every input.
PROVEN = """\
read_verilog -icells cells.v
rename cells gold
read_verilog mapped.v
rename cells gate
miter -equiv -flatten -make_outputs gold gate miter
sat -verify -prove trigger 0 -set-def-inputs miter
"""


def cells(op):
    """A module with cells of a type, of several widths and both signs; the result of a comparison has one bit."""
    ports, lines = [], []
    for number, ((a, b, y), signed) in enumerate(itertools.product(WIDTHS, (0, 1))):
        y = 1 if op in (*COMPARING, "logic_not") else y
        ports += [f"input [{a - 1}:0] a{number}", f"output [{y - 1}:0] y{number}"]
        parameters = f".A_SIGNED({signed}), .A_WIDTH({a}), .Y_WIDTH({y})"
        bound = f".A(a{number}), .Y(y{number})"
        if op in TWO:
            # The amount of a shift has no sign.
            ports.append(f"input [{b - 1}:0] b{number}")
            parameters += f", .B_SIGNED({0 if op.endswith(('shl', 'shr', 'shift')) else signed}), .B_WIDTH({b})"
            bound += f", .B(b{number})"
        lines.append(f"  \\${op} #({parameters}) c{number} ({bound});")
    return "module cells ({});\n{}\nendmodule\n".format(", ".join(ports), "\n".join(lines))


@pytest.mark.parametrize("op", [*TWO, *ONE])
def test_cells_of_full_width_are_the_cells(op, tmp_path):
    (tmp_path / "cells.v").write_text(cells(op))
    (tmp_path / "full_widths.v").write_text(full_widths())
    yosys.run(MAPPED, tmp_path, yosys.writer())
    yosys.run(PROVEN, tmp_path, yosys.writer())
    assert not re.findall(r"%Warning-WIDTH.*", verilator.find().lint(tmp_path / "mapped.v"))


def test_lint_has_something_to_say_of_other_cells(tmp_path):
    (tmp_path / "cells.v").write_text(cells("add"))
    yosys.run("read_verilog -icells cells.v\nwrite_verilog -noattr cells.v\n", tmp_path, yosys.writer())
    found = verilator.find().lint(tmp_path / "cells.v")
    assert "WIDTHEXPAND" in found
    assert "WIDTHTRUNC" in found
