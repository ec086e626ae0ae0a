"""Waivers belong to lines: each has a warning and a reason, and what is new is reported."""

import re

import pytest
from cdu_tools import verilator

#: Mistakes that can be added to a module: a rule, and text at the end of its last line.
MISTAKES = [
    ("UNUSEDSIGNAL", "wire planted = 1'h1;"),
    ("WIDTHEXPAND", "wire [3:0] unused = 3'h1;"),
    ("WIDTHTRUNC", "wire [3:0] unused = 5'h1;"),
    ("UNDRIVEN", "wire planted; wire unused = planted;"),
    ("PROCASSINIT", "reg planted = 0; always @(posedge clk) planted <= !planted; wire unused = planted;"),
]


@pytest.mark.parametrize("block", ["dct", "control", None])
def test_every_waiver_has_its_warning_and_says_why(generated, block, tmp_path):
    made = generated[block]
    made.write(tmp_path)
    (path := tmp_path / "bare" / f"{made.name}.v").parent.mkdir()
    path.write_text(made.verilog)
    warned = re.findall(rf"%Warning-(\w+): \S+/{made.name}\.v:(\d+):", verilator.find().lint(path, top=made.top))
    waived = re.findall(rf'^lint_off -rule (\w+) -file "\*{made.name}\.v" -lines (\d+)', made.waivers, re.MULTILINE)
    assert sorted(set(warned)) == sorted(waived)
    assert len(waived) > 5
    assert made.waivers.count("lint_off") == len(waived), "a waiver of a whole rule"
    assert {rule for rule, _ in waived} == {"DECLFILENAME", "UNUSEDSIGNAL"}
    reasons = re.findall(r"^lint_off -rule UNUSEDSIGNAL .* // .+: (?:not needed here|nothing takes it)$", made.waivers, re.M)
    assert len(reasons) == len(waived) - 1


@pytest.mark.parametrize(("rule", "text"), MISTAKES, ids=[rule for rule, _ in MISTAKES])
def test_a_new_warning_is_reported(generated, rule, text, tmp_path):
    made = generated["shift_quantizer"]
    made.write(tmp_path)
    path = tmp_path / "shift_quantizer.v"
    changed, count = re.subn(r"endmodule\n\Z", f"{text} endmodule\n", made.verilog)
    assert count == 1
    path.write_text(changed)
    assert re.findall(r"%Warning-(\w+)", verilator.find().lint(path, top=made.top)) == [rule]
