"""Static timing by hand calculation, and against OpenSTA where it is installed."""

import json
import re
import shutil
from itertools import pairwise

import pytest
from cdu_synth.area import opensta
from cdu_synth.area.timing import Netlist, Timing
from cdu_synth.library import liberty
from cdu_tools.errors import MissingToolError, UserError

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


needs_opensta = pytest.mark.skipif(not shutil.which("sta"), reason="OpenSTA is not installed: apt-get install opensta")


@needs_opensta
@pytest.mark.parametrize("recipe", ["area", "balanced", "speed"])
def test_opensta_agrees(block, synthesised, nangate45, tmp_path, recipe):
    folder, costs = synthesised
    netlist = Netlist.of(json.loads((folder / f"{recipe}.json").read_text()), block.top)
    path = opensta.find().slowest(netlist, nangate45, tmp_path)
    assert costs[recipe].critical_path_ns == pytest.approx(path.delay_ns, rel=0.02)
    text = (tmp_path / "netlist.v").read_text()
    assert all(re.search(rf"^  {netlist.cells[step][0]} c{step} ", text, re.MULTILINE) for step in path.steps)
    # Every cell of the path drives the next one.
    for one, other in pairwise(path.steps):
        assert set(netlist.cells[one][1].values()) & set(netlist.cells[other][1].values())


@needs_opensta
def test_opensta_names_a_path_from_register_to_register(nangate45, tmp_path):
    cells = netlist(("DFF_X1", {"CK": CLOCK, "D": NEXT, "Q": Q}), ("INV_X1", {"A": Q, "ZN": NEXT}))
    design = Netlist.of(cells, "top")
    path = opensta.find().slowest(design, nangate45, tmp_path)
    assert (path.start, path.end, path.steps) == ("state", "state", (0, 1))
    assert path.delay_ns == pytest.approx(Timing(design, nangate45).slowest().delay_ns, rel=0.02)


@needs_opensta
def test_opensta_without_a_path(tiny_file, tmp_path):
    library = liberty.read("tiny", [tiny_file])
    design = Netlist.of(netlist(("INV", {"A": "1", "Y": NEXT})), "top")
    assert opensta.find().slowest(design, library, tmp_path) is None


@needs_opensta
def test_opensta_says_what_it_does_not_accept(tiny_file, tmp_path):
    library = liberty.read("tiny", [tiny_file])
    design = Netlist.of(netlist(("INV", {"NO_SUCH_PIN": Q, "Y": NEXT})), "top")
    tiny_file.write_text("library (tiny) {")
    with pytest.raises(opensta.OpenStaError, match="OpenSTA"):
        opensta.find().slowest(design, library, tmp_path)


def test_choice_of_the_timer(monkeypatch):
    assert opensta.choose("builtin") is None
    with pytest.raises(UserError, match="unknown --sta 'primetime': use auto"):
        opensta.choose("primetime")
    monkeypatch.setenv("PATH", "")
    assert opensta.choose("auto") is None
    with pytest.raises(MissingToolError, match="apt-get install opensta"):
        opensta.choose("opensta")


def test_netlist_of_a_real_block(block, synthesised, nangate45):
    folder, costs = synthesised
    design = json.loads((folder / "area.json").read_text())
    assert len(Netlist.of(design, block.top).cells) == costs["area"].cells
