"""SRAM macros in timing and area, by hand calculation."""

import pytest
from cdu.delivery import generator
from cdu.delivery.memories import Macro, Memories
from cdu_spec.config import CduConfig
from cdu_synth.area import flow
from cdu_synth.area.timing import Netlist, Timing
from cdu_synth.library import liberty
from cdu_synth.library.macros import with_macros

PINS = {
    "CLK": "clk",
    "WE": "write_enable",
    "AW": "write_address",
    "D": "write_data",
    "RE": "read_enable",
    "AR": "read_address",
    "Q": "read_data",
}
SRAM = """
library (sram) {{ time_unit : "1ps"; capacitive_load_unit (1,{unit}); leakage_power_unit : "1nW";
  type (two) {{ base_type : array; data_type : bit; bit_width : 2; bit_from : 1; bit_to : 0; }}
  type (one) {{ base_type : array; data_type : bit; bit_width : 2; bit_from : 0; bit_to : 1; }}
  cell (RAM) {{ area : 700; cell_leakage_power : 3; memory () {{ type : ram; address_width : 2; word_width : 2; }}
    pin (CLK) {{ direction : input; capacitance : 1; }}
    pin (WE) {{ direction : input; capacitance : 1; }} pin (RE) {{ direction : input; capacitance : 1; }}
    bus (AW) {{ bus_type : two; direction : input; capacitance : 1; }}
    bus (AR) {{ bus_type : two; direction : input; capacitance : 1; }}
    bus (D) {{ bus_type : one; direction : input; capacitance : 1; pin (D[1]) {{ capacitance : 3; }}
      pin (D[1:0]) {{ timing () {{ related_pin : "CLK"; timing_type : setup_rising;
        rise_constraint (scalar) {{ values ("5"); }} fall_constraint (scalar) {{ values ("9"); }} }} }} }}
    bus (Q) {{ bus_type : two; direction : output;
      timing () {{ related_pin : "CLK"; timing_type : {edge}; timing_sense : non_unate;
        cell_rise (scalar) {{ values ("200"); }} cell_fall (scalar) {{ values ("210"); }}
        rise_transition (scalar) {{ values ("4"); }} fall_transition (scalar) {{ values ("4"); }} }} }} }} }}
"""


@pytest.fixture
def macro(tmp_path):
    def make(pins=PINS, unit="ff", edge="rising_edge", name="RAM"):
        path = tmp_path / "sram.lib"
        path.write_text(SRAM.format(unit=unit, edge=edge))
        return Macro(2, 4, name, 2, 4, pins, liberty=path)

    return make


def design(**connections):
    """Return a module of a macro, an inverter behind bit 1 of its word, and a flip-flop before its data."""
    cells = {
        "ram": ("RAM", connections),
        "inv": ("INV", {"A": [11], "Y": [12]}),
        "ff": ("DFF", {"CK": [2], "D": [3], "Q": [4]}),
    }
    ports = {"clk": ("input", 2), "d": ("input", 3), "y": ("output", 12)}
    return {
        "modules": {
            "top": {
                "ports": {name: {"direction": direction, "bits": [bit]} for name, (direction, bit) in ports.items()},
                "cells": {name: {"type": kind, "connections": pins} for name, (kind, pins) in cells.items()},
                "netnames": {"word": {"bits": [10, 11]}, "state": {"bits": [4]}, "y": {"bits": [12]}},
            }
        }
    }


def test_the_bits_of_a_bus_are_pins(macro, tiny_file):
    library = with_macros(liberty.read("tiny", [tiny_file]), [macro()])
    cell = library.cells["RAM"]
    assert cell.macro
    assert not cell.usable
    assert {pin: cell.capacitances[pin] for pin in ("AW[0]", "AW[1]", "D[0]", "D[1]")} == {
        "AW[0]": 1.0,
        "AW[1]": 1.0,
        "D[0]": 1.0,
        "D[1]": 3.0,
    }
    assert {arc.target for arc in cell.arcs} == {"Q[0]", "Q[1]"}
    assert {arc.target for arc in cell.setups} == {"D[0]", "D[1]"}


def test_paths_begin_and_end_at_a_macro(macro, tiny_file):
    library = with_macros(liberty.read("tiny", [tiny_file]), [macro()])
    netlist = Netlist.of(design(CLK=[2], D=[4, 4], Q=[10, 11]), "top")
    path = Timing(netlist, library).slowest()
    # Q falls at 210, the inverter, without a load and behind an edge of 4, rises 10 - (30 - 10) / 2 + 0.4 ... later.
    assert (path.start, path.end) == ("word[1]", "y")
    inverter = library.cells["INV"].arcs[0].delays
    assert path.delay_ns == pytest.approx((max(210 + inverter[0].at(4, 0), 200 + inverter[1].at(4, 0))) / 1e3)
    # Without the word: the flip-flop drives 1 + 3 fF, 80 and 90 at 4 fF by its slope; data must be there 5 and 9 before.
    launched = library.cells["DFF"].arcs[0].delays
    path = Timing(Netlist.of(design(CLK=[2], D=[4, 4]), "top"), library).slowest()
    assert path.start == "state"
    assert path.delay_ns == pytest.approx(max(launched[0].at(0, 4) + 5, launched[1].at(0, 4) + 9) / 1e3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unit": "pf"}, "counts in 0.001 ns and 1 pf, library tiny in 0.001 ns and 1 ff"),
        ({"edge": "falling_edge"}, "gives its word at the falling edge"),
        ({"name": "ROM"}, "has no cell ROM"),
        ({"pins": {**PINS, "DI": "write_data"}}, r"has no pin DI\[0\] of RAM"),
    ],
)
def test_what_a_macro_must_have(changes, message, macro, tiny_file):
    with pytest.raises(liberty.LibertyError, match=message):
        with_macros(liberty.read("tiny", [tiny_file]), [macro(**changes)])


def test_area_beside_a_macro_that_nothing_is_known_of(nangate45):
    """The rest of the buffer has less than an eighth of its area, and the macro is counted."""
    macro = Macro(64, 64, "RAM", 32, 64, PINS)
    of_cells, beside = (
        generator.generate(CduConfig(), "alignment_buffer", memories) for memories in (Memories(), Memories([macro]))
    )
    costs = [
        flow.clock_sweep(made.verilog, made.top, nangate45, [1.6], recipes=["balanced"], macros=macros)[1.6]["balanced"]
        for made, macros in ((of_cells, []), (beside, [macro]))
    ]
    assert [cost.macros for cost in costs] == [0, 2]
    assert costs[1].macros_um2 == 0
    assert costs[1].ge < costs[0].ge / 8
    assert costs[1].flip_flops == costs[0].flip_flops - 64 * 65
    assert costs[1].critical_path_ns > 0
