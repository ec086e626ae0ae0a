"""Registers with enables get gated clocks: fewer gates, the same behaviour as Icarus sees it, and paths that end at a gate."""

import json
import shutil
import subprocess
from itertools import product

import pytest
from cdu_synth.area import clock_gates, flow
from cdu_synth.library import pdk
from cdu_synth.power.cell_models import cell_models
from cdu_synth.power.mapped import MappedModule
from cdu_tools.errors import MissingToolError

#: Registers of every kind: reset to 0 or 1 by a high or a low reset or by none, kept by a high or a low enable or never.
KINDS = [
    (reset, value, enable)
    for reset, value, enable in product(("rst", "!rst", ""), "01", ("en", "!en", ""))
    if reset or value == "0"
]
SMALL = clock_gates.LEAST_FLIP_FLOPS - 1


def _register(number, reset, value, enable):
    enabled = f"if ({enable}) " if enable else ""
    first = f"if ({reset}) q{number} <= {{8{{1'b{value}}}}}; else " if reset else ""
    return f"  reg [7:0] q{number}; always @(posedge clk) {first}{enabled}q{number} <= d ^ {number};\n"


def _module(registers):
    ports = ", ".join(f"output [7:0] o{number}" for number in range(len(registers)))
    assigned = "".join(f"  assign o{number} = q{number};\n" for number in range(len(registers)))
    return f"module regs(input clk, rst, en, input [7:0] d, {ports});\n{''.join(registers)}{assigned}endmodule\n"


ALL = _module([_register(number, *kind) for number, kind in enumerate(KINDS)])


def _mapped(text, library, folder, gated=True):
    cost = flow.synthesise(text, "regs", library, 1.0, directory=folder, recipes=["balanced"], gated=gated)["balanced"]
    return cost, MappedModule.of(json.loads((folder / "balanced.json").read_text()), "regs")


def test_one_gate_for_each_condition_and_no_other_register(nangate45, tmp_path):
    gated, module = _mapped(ALL, nangate45, tmp_path)
    plain, _ = _mapped(ALL, nangate45, tmp_path, gated=False)
    conditions = {(reset, enable) for reset, _, enable in KINDS if enable}
    assert (gated.clock_gates, plain.clock_gates) == (len(conditions), 0)
    assert gated.flip_flops == plain.flip_flops == 8 * len(KINDS)
    assert gated.area_um2 < 0.9 * plain.area_um2
    (clock,) = module.ports["clk"].nets
    free = sum(cell.pins["CK"] == clock for cell in module.cells if cell.kind.startswith("DFF"))
    assert free == 8 * sum(not enable for _, _, enable in KINDS)


def test_few_flip_flops_get_no_gate(nangate45, tmp_path):
    few = f"module regs(input clk, en, input [{SMALL - 1}:0] d, output reg [{SMALL - 1}:0] q);\n"
    cost, _ = _mapped(few + "  always @(posedge clk) if (en) q <= d;\nendmodule\n", nangate45, tmp_path)
    assert (cost.flip_flops, cost.clock_gates) == (SMALL, 0)


def test_the_path_to_a_gate_counts(nangate45, tmp_path):
    text = _module([_register(0, "rst", "0", "q1 * q1 == d"), _register(1, "", "0", "")])
    cost, _ = _mapped(text, nangate45, tmp_path)
    assert cost.clock_gates == 1
    assert cost.start.startswith("q1") or cost.start.startswith("o1")
    assert not cost.end.startswith(("q", "o"))
    assert cost.critical_path_ns > 0.5


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus is not installed: apt-get install iverilog")
@pytest.mark.parametrize("name", ["nangate45", "sky130hd", "asap7"])
def test_a_gated_netlist_does_what_its_source_does(name, tmp_path):
    try:
        library = pdk.find(name).read()
    except MissingToolError as error:
        pytest.skip(str(error))
    cost, module = _mapped(ALL, library, tmp_path)
    assert cost.clock_gates
    ends = ", ".join(f".o{number}(a{number})" for number in range(len(KINDS)))
    wires = "".join(f"  wire [7:0] a{number}, b{number};\n" for number in range(len(KINDS)))
    compared = " || ".join(f"a{number} !== b{number}" for number in range(len(KINDS)))
    bench = f"""`timescale 1ns/1ns
module bench;
  reg clk = 0, rst, en; reg [7:0] d; integer cycle, wrong = 0;
{wires}  regs mapped (.clk(clk), .rst(rst), .en(en), .d(d), {ends});
  source_regs source (.clk(clk), .rst(rst), .en(en), .d(d), {ends.replace("(a", "(b")});
  initial begin
    for (cycle = 0; cycle < 600; cycle = cycle + 1) begin
      // each register is written once before it is looked at
      {{rst, en}} = cycle < 4 ? cycle : $random; d = $random;
      #4 clk = 1; #1 if (cycle >= 4 && ({compared})) wrong = wrong + 1;
      #4 clk = 0; #1;
    end
    $display("wrong %0d", wrong); $finish;
  end
endmodule
"""
    files = {"bench.v": bench, "mapped.v": module.verilog(), "cells.v": cell_models(library, module.kinds)}
    files["source.v"] = ALL.replace("module regs", "module source_regs")
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    subprocess.run(["iverilog", "-g2005", "-o", "bench", *files], cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.split()[:2] == ["wrong", "0"]


def test_a_library_without_a_gate_has_multiplexers(tmp_path):
    """IHP's library says of its gates that they are not to be used."""
    try:
        library = pdk.find("ihp_sg13g2").read()
    except MissingToolError as error:
        pytest.skip(str(error))
    assert library.clock_gate is None
    assert clock_gates.commands(library) == ""
    cost, _ = _mapped(ALL, library, tmp_path)
    assert cost.clock_gates == 0
