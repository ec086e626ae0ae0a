"""Memories of latches: smaller than registers, the same behaviour as Icarus sees it, half a period for what is written."""

import json
import shutil
import subprocess
from dataclasses import replace

import pytest
from cdu.delivery.memories import Memories
from cdu_synth.area import flow
from cdu_synth.area.timing import Netlist, Timing
from cdu_synth.library import pdk
from cdu_synth.library.liberty import LibertyError
from cdu_synth.power.cell_models import cell_models
from cdu_synth.power.mapped import MappedModule
from cdu_tools.errors import MissingToolError


def memory(name, width, depth, *, latches):
    """A memory as module ``name``."""
    bits = (depth - 1).bit_length()
    ports = {"write_enable": 1, "read_enable": 1, "write_address": bits, "read_address": bits, "write_data": width}
    declared = ", ".join(f"input [{size - 1}:0] {port}" for port, size in ports.items())
    joined = ", ".join(f".{port}({port})" for port in ("clk", *ports, "read_data"))
    parts = Memories(latches=latches).module(name, [(width, depth)])
    parameters = f"#(.WIDTH({width}), .DEPTH({depth}), .ADDRESS_BITS({bits}))"
    return (
        f"module {name}(input clk, {declared}, output [{width - 1}:0] read_data);\n"
        f"  {name}__ram_1r1w {parameters} ram ({joined});\nendmodule\n{parts}"
    )


def mapped(library, folder, width, depth, *, latches=True):
    text = memory("memory", width, depth, latches=latches)
    cost = flow.synthesise(text, "memory", library, 1.6, directory=folder, recipes=["balanced"])["balanced"]
    return cost, json.loads((folder / "balanced.json").read_text())


def test_a_memory_of_latches_is_smaller(nangate45, tmp_path):
    held, _ = mapped(nangate45, tmp_path, 16, 64)
    plain, _ = mapped(nangate45, tmp_path, 16, 64, latches=False)
    assert (held.flip_flops, plain.flip_flops) == (2 * 16, 65 * 16)
    assert held.clock_gates >= 64
    assert held.area_um2 < 0.7 * plain.area_um2


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus is not installed: apt-get install iverilog")
@pytest.mark.parametrize("name", ["nangate45", "sky130hd", "asap7"])
def test_a_netlist_of_latches_does_what_registers_do(name, tmp_path):
    try:
        library = pdk.find(name).read()
    except MissingToolError as error:
        pytest.skip(str(error))
    _, netlist = mapped(library, tmp_path, 3, 5)
    module = MappedModule.of(netlist, "memory")
    ports = ("clk", "write_enable", "read_enable", "write_address", "read_address", "write_data")
    joined = ", ".join(f".{port}({port})" for port in ports)
    bench = f"""`timescale 1ns/1ns
module bench;
  reg clk = 0, write_enable, read_enable; reg [2:0] write_address, read_address, write_data; wire [2:0] a, b;
  reg [7:0] known = 0; integer cycle, wrong = 0, reads = 0;
  memory mapped ({joined}, .read_data(a));
  source source ({joined}, .read_data(b));
  initial begin
    for (cycle = 0; cycle < 2000; cycle = cycle + 1) begin
      write_enable = $random; write_data = $random;
      write_address = $unsigned($random) % 5; read_address = $unsigned($random) % 5;
      // no word is read in the cycle that writes it, nor before it is written
      read_enable = known[read_address] && !(write_enable && write_address == read_address) && ($random & 3) != 0;
      #5 clk = 1; if (write_enable) known[write_address] = 1;
      #1 if (reads && a !== b) wrong = wrong + 1; if (read_enable) reads = reads + 1;
      #3 if (reads && a !== b) wrong = wrong + 1;
      #1 clk = 0;
    end
    $display("wrong %0d of %0d", wrong, reads); $finish;
  end
endmodule
"""
    files = {"bench.v": bench, "mapped.v": module.verilog(), "cells.v": cell_models(library, module.kinds)}
    files["source.v"] = memory("source", 3, 5, latches=False)
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    subprocess.run(["iverilog", "-g2005", "-o", "bench", *files], cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True)
    _, wrong, _, reads = done.stdout.split()[:4]
    assert (wrong, int(reads) > 500) == ("0", True)


def design(cells):
    """A module of Nangate cells with a clock, by name their pins."""
    return Netlist.of(
        {
            "modules": {
                "top": {
                    "ports": {"clk": {"direction": "input", "bits": [2]}},
                    "cells": {name: {"type": kind, "connections": pins} for name, (kind, pins) in cells.items()},
                    "netnames": {},
                }
            }
        },
        "top",
    )


def chain(count, first):
    """Inverters one after the other from net ``first``; the last one drives ``first + count``."""
    return {f"inv{n}": ("INV_X1", {"A": [first + n], "ZN": [first + n + 1]}) for n in range(count)}


def test_a_path_into_a_latch_has_half_a_period_and_one_through_it_goes_on(nangate45):
    source, sink = ("DFF_X1", {"CK": [2], "D": [3], "Q": [10]}), ("DFF_X1", {"CK": [2], "D": [50], "Q": [60]})
    gate = ("CLKGATE_X1", {"CK": [2], "E": [3], "GCK": [4]})
    latch = ("DLH_X1", {"G": [4], "D": [10 + 20], "Q": [31]})

    def slowest(cells):
        return Timing(design(cells), nangate45).slowest()

    to_latch = {"source": source, "gate": gate, "latch": latch, **chain(20, 10)}
    plain = {"source": source, "sink": ("DFF_X1", {"CK": [2], "D": [30], "Q": [60]}), **chain(20, 10)}
    into, straight = slowest(to_latch), slowest(plain)
    setup = {kind: next(arc for arc in nangate45.cells[kind].setups if arc.target == "D") for kind in ("DLH_X1", "DFF_X1")}
    setups = [max(table.at(0.01, 0.0) for table in arc.delays if table) for arc in setup.values()]
    assert into.delay_ns / 2 - straight.delay_ns == pytest.approx(setups[0] - setups[1], abs=0.02)
    through = {**to_latch, "latch": ("DLH_X1", {"G": [4], "D": [10], "Q": [30]}), **chain(20, 30), "sink": sink}
    through = {name: cell for name, cell in through.items() if name != "source"} | {"source": source}
    behind = slowest(through)
    assert 0.03 < behind.delay_ns - straight.delay_ns < 0.2
    assert behind.cells == 22


def test_a_library_without_latches_is_refused(nangate45, tmp_path):
    cells = {name: cell for name, cell in nangate45.cells.items() if cell.latch is None}
    assert len(cells) < len(nangate45.cells)
    with pytest.raises(LibertyError, match="library nangate45 has no latch or no clock gate for memories of latches") as caught:
        mapped(replace(nangate45, cells=cells), tmp_path, 4, 4)
    assert "\n" not in str(caught.value)
