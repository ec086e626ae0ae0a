"""Toggles known by arithmetic, and the same words and toggles as Icarus counts on models that Yosys makes of the cells."""

import json
import random
import re
import shutil
import subprocess

import pytest
from cdu_synth.area import flow
from cdu_synth.library import liberty
from cdu_synth.library.liberty import LibertyError
from cdu_synth.power.activity import Stimulus
from cdu_synth.power.cell_models import cell_models
from cdu_synth.power.gate_simulator import GateSimulationError, GateSimulator
from cdu_synth.power.mapped import MappedModule, net_of
from cdu_tools import yosys

COUNTER = """module counter(clk, rst, q);
  input clk, rst; output reg [7:0] q;
  always @(posedge clk) if (rst) q <= 0; else q <= q + 1;
endmodule
"""
BENCH = """`timescale 1ns/1ns
module bench;
  reg clk = 0; reg [15:0] cycle = 0; reg [WIDTH-1:0] words [0:COUNT-1]; integer out;
  reg [15:0] sent = 0; wire ready, valid; wire [OUTS-1:0] payload; wire running = cycle >= 4;
  BLOCK unit (.clk(clk), .rst(!running), .i__valid(running && sent < COUNT), .i__ready(ready),
    .i__payload(running ? words[sent < COUNT ? sent : COUNT-1] : 0),
    .o__valid(valid), .o__ready(running), .o__payload(payload), SETTINGS);
  initial begin $readmemh("words.hex", words); out = $fopen("out.hex"); $dumpfile("wires.vcd"); end
  always #5 clk = !clk;
  always @(negedge clk) begin
    if (cycle == 4) $dumpvars(1, unit);
    if (running && valid) $fwrite(out, "%h\\n", payload);
    if (cycle == 3 + CYCLES) $finish;
  end
  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (running && sent < COUNT && ready) sent <= sent + 1;
  end
endmodule
"""


@pytest.fixture(scope="module")
def mapped(block, nangate45, tmp_path_factory):
    """The small block as a netlist."""
    folder = tmp_path_factory.mktemp("mapped")
    flow.synthesise(block.verilog, block.top, nangate45, 1.0, yosys.engine(), folder, ["balanced"])
    return MappedModule.of(json.loads((folder / "balanced.json").read_text()), block.top)


@pytest.fixture(scope="module")
def stimulus():
    """Random words and shifts; the block gives a word for each."""
    rng = random.Random(1)
    words = [rng.getrandbits(64) for _ in range(64)]
    return Stimulus({"i": words}, {"o": len(words)}, {"shifts": rng.getrandbits(2 * 64 * 3), "bank": 1})


def test_a_counter_toggles_as_arithmetic_says(nangate45, tmp_path):
    flow.synthesise(COUNTER, "counter", nangate45, 1.0, yosys.engine(), tmp_path, ["area"])
    module = MappedModule.of(json.loads((tmp_path / "area.json").read_text()), "counter")
    _, activity = GateSimulator(module, nangate45).run(Stimulus({}, {}))
    changes = activity.cycles - 1
    assert changes > 256
    assert [activity.toggles[net] for net in module.ports["q"].nets] == [changes >> bit for bit in range(8)]
    assert activity.high[module.ports["q"].nets[0]] == pytest.approx(0.5, abs=1 / changes)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus is not installed")
def test_words_and_toggles_are_those_of_icarus(mapped, nangate45, stimulus, tmp_path):
    received, activity = GateSimulator(mapped, nangate45).run(stimulus)
    sizes = {"WIDTH": len(mapped.ports["i__payload"].nets), "OUTS": len(mapped.ports["o__payload"].nets)}
    constants = {**sizes, "COUNT": len(stimulus.inputs["i"]), "CYCLES": activity.cycles, "BLOCK": mapped.name}
    constants["SETTINGS"] = ", ".join(
        f".{name}({len(mapped.ports[name].nets)}'h{bits:x})" for name, bits in stimulus.settings.items()
    )
    bench = re.sub("|".join(constants), lambda found: str(constants[found[0]]), BENCH)
    (tmp_path / "bench.v").write_text(bench + mapped.verilog() + cell_models(nangate45, mapped.kinds))
    (tmp_path / "words.hex").write_text("".join(f"{word:x}\n" for word in stimulus.inputs["i"]))
    subprocess.run(["iverilog", "-o", "bench", "bench.v"], cwd=tmp_path, check=True)
    subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True)
    assert received["o"] == [int(line, 16) for line in (tmp_path / "out.hex").read_text().split()]
    toggles = _toggles((tmp_path / "wires.vcd").read_text())
    (clock,) = mapped.ports["clk"].nets
    assert len(toggles) == len(mapped.nets)
    gated = {pins["GCK"] for kind, pins in ((cell.kind, cell.pins) for cell in mapped.cells) if kind.startswith("CLKGATE")}
    clocks = {clock, *gated}
    assert {net: count for net, count in toggles.items() if net not in clocks} == {
        net: count for net, count in activity.toggles.items() if net not in clocks
    }
    # Icarus' window begins and ends in the middle of a cycle.
    assert gated
    assert all(0 <= activity.toggles[net] - toggles[net] <= 2 for net in gated)


def _toggles(dump):
    """Changes by net in a value change dump of a module's wires."""
    nets = {
        code: net for code, name in re.findall(r"\$var wire\s+1 (\S+) (\S+) \$end", dump) if (net := net_of(name)) is not None
    }
    _, _, changes = dump.partition("$dumpvars")
    initial, _, later = changes.partition("$end")
    counts = dict.fromkeys(nets.values(), 0)
    last = {code: value for value, code in re.findall(r"^([01])(\S+)$", initial, re.MULTILINE)}
    for value, code in re.findall(r"^([01])(\S+)$", later, re.MULTILINE):
        if code in nets:
            counts[nets[code]] += last[code] != value
            last[code] = value
    return counts


def test_a_wrong_cell_shows(mapped, nangate45, stimulus):
    """Words change when one NAND becomes a NOR."""
    right, _ = GateSimulator(mapped, nangate45).run(stimulus)
    number = max(index for index, cell in enumerate(mapped.cells) if cell.kind == "NAND2_X1")
    cells = list(mapped.cells)
    cells[number] = type(cells[number])(cells[number].name, "NOR2_X1", cells[number].pins)
    wrong = MappedModule(mapped.name, tuple(cells), mapped.ports)
    received, _ = GateSimulator(wrong, nangate45).run(stimulus)
    assert received != right


def test_a_netlist_that_does_not_go_on(mapped, nangate45, stimulus):
    more = Stimulus(stimulus.inputs, {"o": stimulus.expected["o"] + 1}, stimulus.settings)
    with pytest.raises(GateSimulationError, match="does not go on"):
        GateSimulator(mapped, nangate45).run(more)
    fewer = Stimulus(stimulus.inputs, {"o": stimulus.expected["o"] - 8}, stimulus.settings)
    with pytest.raises(GateSimulationError, match="more words than expected"):
        GateSimulator(mapped, nangate45).run(fewer)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"a": ("INV_X1", {"A": 5, "ZN": 6}), "b": ("INV_X1", {"A": 6, "ZN": 5})}, "loops"),
        ({"a": ("DFFR_X1", {"CK": 2, "D": 3, "RN": 3, "Q": 5})}, "asynchronous"),
        ({"a": ("DFF_X1", {"CK": 3, "D": 3, "Q": 5})}, "its clock"),
    ],
)
def test_netlists_that_cannot_be_simulated(cells, reason, nangate45):
    module = {
        "ports": {"clk": {"direction": "input", "bits": [2]}, "rst": {"direction": "input", "bits": [3]}},
        "cells": {
            name: {"type": kind, "connections": {pin: [net] for pin, net in pins.items()}}
            for name, (kind, pins) in cells.items()
        },
    }
    with pytest.raises(GateSimulationError, match=reason):
        GateSimulator(MappedModule.of({"modules": {"top": module}}, "top"), nangate45)


def test_cells_that_a_library_does_not_have(nangate45):
    with pytest.raises(LibertyError, match="NAND9"):
        cell_models(nangate45, ["NAND9"])


def test_a_flip_flop_with_an_enable_keeps_its_state(tmp_path):
    path = tmp_path / "enabled.lib"
    path.write_text("""library (enabled) { time_unit : "1ns"; cell (EDFF) { area : 9;
      ff ("IQ", "IQ_N") { clocked_on : "CK"; next_state : "(E & D) | (IQ & !E)"; }
      pin (CK) { direction : input; clock : true; } pin (D) { direction : input; } pin (E) { direction : input; }
      pin (Q) { direction : output; function : "IQ"; } pin (QN) { direction : output; function : "IQ_N"; } } }""")
    cells = {
        "divider": ("EDFF", {"CK": 2, "E": "1", "D": 5, "Q": 4, "QN": 5}),
        "half": ("EDFF", {"CK": 2, "E": 4, "D": 7, "Q": 6, "QN": 7}),
    }
    module = {
        "ports": {"clk": {"direction": "input", "bits": [2]}, "rst": {"direction": "input", "bits": [3]}},
        "cells": {
            name: {"type": kind, "connections": {pin: [net] for pin, net in pins.items()}}
            for name, (kind, pins) in cells.items()
        },
    }
    netlist = MappedModule.of({"modules": {"top": module}}, "top")
    _, activity = GateSimulator(netlist, liberty.read("enabled", [path])).run(Stimulus({}, {}))
    changes = activity.cycles - 1
    assert activity.toggles[4] == activity.toggles[5] == changes
    assert activity.toggles[6] == activity.toggles[7] == changes // 2
