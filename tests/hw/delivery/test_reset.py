"""The reset of a delivered unit: its port, its level, and when registers take it."""

import subprocess
from itertools import product

import pytest
from cdu.delivery.generator import generate
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from tools_here import needs_icarus

RESETS = list(product(("high", "low"), ("sync", "async")))
#: A register is filled; the reset comes between two edges of the clock and ends at one.
BENCH = """\
`timescale 1ns/1ns
module bench;
  reg clk = 0, {port} = {active}, valid = 0;
  wire taken, waits;
  cdu_inverse_shift_quantizer dut (.clk(clk), .{port}({port}), .i__valid(valid), .i__ready(taken), .i__payload({width}'b0),
    .o__valid(waits), .o__ready(1'b0));
  task cycle; begin #5 clk = 1; #5 clk = 0; end endtask
  initial begin
    cycle; {port} = !{active}; valid = 1; cycle; valid = 0; cycle;
    $display("full %b", waits);
    {port} = {active}; #1 $display("reset %b", waits);
    cycle; $display("edge %b", waits);
    {port} = !{active}; cycle; $display("after %b", waits);
    $finish;
  end
endmodule
"""


def run(folder, sources):
    for name, text in sources.items():
        (folder / name).write_text(text)
    subprocess.run(["iverilog", "-g2012", "-o", "bench", *sources], cwd=folder, check=True)
    return subprocess.run(["vvp", "-n", "bench"], cwd=folder, check=True, capture_output=True, text=True).stdout


@needs_icarus
@pytest.mark.parametrize(("level", "kind"), RESETS)
def test_when_a_register_takes_the_reset(level, kind, tmp_path):
    config = CduConfig(reset_active=level, reset_kind=kind)
    made = generate(config, "inverse_shift_quantizer")
    port = {"high": "rst", "low": "aresetn"}[level]
    ports = {entry["name"]: entry["width"] for entry in made.manifest["ports"]}
    assert {port, "clk"} <= set(ports)
    assert len({"rst", "aresetn"} & set(ports)) == 1
    bench = BENCH.format(port=port, active=int(level == "high"), width=ports["i__payload"])
    seen = run(tmp_path, {"bench.v": bench, "dut.v": made.verilog})
    at_once = 0 if kind == "async" else 1
    assert seen.splitlines()[:4] == ["full 1", f"reset {at_once}", "edge 0", "after 0"]


@needs_icarus
@pytest.mark.parametrize(
    ("level", "kind"), [*(pytest.param(*one, marks=pytest.mark.campaign) for one in RESETS[1:3]), RESETS[3]]
)
def test_a_unit_comes_out_of_its_reset(level, kind, tmp_path):
    made = generate(CduConfig(modes=("sfpr",), reset_active=level, reset_kind=kind))
    assert "PASS" in run(tmp_path, {"bench.sv": made.bench, "dut.v": made.verilog})


@pytest.mark.parametrize("wrong", [{"reset_active": "up"}, {"reset_kind": "sometimes"}, {"reset_active": 1}])
def test_other_resets_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(ConfigError, match=rf"{name} = .* is not allowed: use (high, low|sync, async)"):
        CduConfig().override(**wrong)
