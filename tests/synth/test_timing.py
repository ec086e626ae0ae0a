"""Static timing by hand calculation, and against OpenSTA where it is installed."""

import json
import re
import shutil
import subprocess

import pytest
from cdu import yosys
from cdu_synth import liberty
from cdu_synth.timing import Netlist, Timing

CLOCK, D_IN, Q, NEXT = 2, 3, 4, 5


def netlist(*cells):
    """A module with clock and data input, output Q, and the given cells."""
    return {
        "modules": {
            "top": {
                "ports": {
                    "clk": {"direction": "input", "bits": [CLOCK]},
                    "d": {"direction": "input", "bits": [D_IN]},
                    "q": {"direction": "output", "bits": [Q]},
                },
                "cells": {
                    f"u{i}": {"type": kind, "connections": {pin: [net] for pin, net in pins.items()}}
                    for i, (kind, pins) in enumerate(cells)
                },
                "netnames": {"state": {"bits": [Q]}, "$auto": {"hide_name": 1, "bits": [NEXT]}},
            }
        }
    }


def test_register_to_register_by_hand(tiny_file):
    design = netlist(("DFF", {"CK": CLOCK, "D": NEXT, "Q": Q}), ("INV", {"A": Q, "Y": NEXT}))
    path = Timing(Netlist.of(design, "top"), liberty.read("tiny", [tiny_file])).slowest()
    # Q drives 1 fF: rises at 50, falls at 60, both in 2. The inverter drives 2 fF: it rises after
    # (10 + 30) / 2 * 0.8 + (12 + 36) / 2 * 0.2 = 20.8 in 6, falls after 30 * 0.8 + 32 * 0.2 = 30.4 in 9.
    # Setup with the clock's edge at once: rising data 5 + 2 * 0.6 = 6.2, falling 15 + 10 * 0.9 = 24.
    rising, falling = 60 + 20.8 + 6.2, 50 + 30.4 + 24
    assert path.delay_ns == pytest.approx(max(rising, falling) * 1e-3)
    assert (path.start, path.end, path.cells) == ("state", "state", 2)


def test_input_to_register_and_to_output(tiny_file):
    library = liberty.read("tiny", [tiny_file])
    through = netlist(("INV", {"A": D_IN, "Y": Q}))
    path = Timing(Netlist.of(through, "top"), library).slowest()
    assert path.delay_ns == pytest.approx(10e-3)  # falls, at no load: 20 - (40 - 20) / 2
    into = netlist(("DFF", {"CK": CLOCK, "D": D_IN, "Q": Q}))
    path = Timing(Netlist.of(into, "top"), library).slowest()
    assert path.delay_ns == pytest.approx(50e-3)  # clock to output, at no load: 60 - (80 - 60) / 2


def test_constants_carry_no_path(tiny_file):
    design = netlist(("INV", {"A": "1", "Y": NEXT}), ("DFF", {"CK": CLOCK, "D": NEXT, "Q": Q}))
    path = Timing(Netlist.of(design, "top"), liberty.read("tiny", [tiny_file])).slowest()
    assert path.end == "state"
    assert path.cells == 1


def test_a_module_without_cells_has_no_path_but_its_wires(tiny_file):
    design = netlist()
    assert Timing(Netlist.of(design, "top"), liberty.read("tiny", [tiny_file])).slowest() is None


@pytest.mark.skipif(not shutil.which("sta"), reason="OpenSTA is not installed: apt-get install opensta")
@pytest.mark.parametrize("recipe", ["area", "balanced", "speed"])
def test_opensta_agrees(block, synthesised, recipe):
    folder, costs = synthesised
    yosys.run(
        f"read_json {recipe}.json\nsplitnets -ports\nopt_clean -purge\nwrite_verilog -noattr -noexpr {recipe}.v\n", folder
    )
    plain = re.sub(r"\b(wire|input|output) signed\b", r"\1", (folder / f"{recipe}.v").read_text())
    (folder / f"{recipe}.v").write_text(plain)
    cells = (folder / "cells0.lib").read_text()
    # OpenSTA would add the library's statistical wires, which this project's timing leaves out.
    (folder / "no_wires.lib").write_text(re.sub(r"default_wire_load\w*\s*:[^;]*;", "", cells))
    (folder / "sta.tcl").write_text(
        f"read_liberty no_wires.lib\nread_verilog {recipe}.v\nlink_design {block.name}\n"
        "create_clock -name c -period 10 [get_ports clk]\n"
        "set_input_delay 0 -clock c [all_inputs]\nset_output_delay 0 -clock c [all_outputs]\n"
        "report_checks -path_delay max -digits 4\n"
    )
    text = subprocess.run(["sta", "-exit", "sta.tcl"], cwd=folder, capture_output=True, text=True, check=True).stdout
    slack = float(re.search(r"(-?[\d.]+)\s+slack", text)[1])
    assert costs[recipe].critical_path_ns == pytest.approx(10 - slack, rel=0.02)


def test_netlist_of_a_real_block(block, synthesised, nangate45):
    folder, costs = synthesised
    design = json.loads((folder / "area.json").read_text())
    assert len(Netlist.of(design, block.name).cells) == costs["area"].cells
