"""Libraries and one small synthesised block for the tests of cost reports."""

import pytest
from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_synth.area import flow
from cdu_synth.library import pdk
from cdu_tools.errors import MissingToolError

TINY_LIBRARY = """
/* two gates, one flip-flop; tables of one and two dimensions */
library (tiny) {
  time_unit : "1ps"; leakage_power_unit : "1nW"; capacitive_load_unit (1,ff);
  input_threshold_pct_rise : 50; input_threshold_pct_fall : 50; output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;
  slew_lower_threshold_pct_rise : 20; slew_lower_threshold_pct_fall : 20;
  slew_upper_threshold_pct_rise : 80; slew_upper_threshold_pct_fall : 80;
  lu_table_template (d) { variable_1 : total_output_net_capacitance; variable_2 : input_net_transition;
    index_1 ("1, 3"); index_2 ("0, 10"); }
  lu_table_template (s) { variable_1 : related_pin_transition; variable_2 : constrained_pin_transition;
    index_1 ("0, 10"); index_2 ("0, 10"); }
  cell (INV) { area : 1; cell_leakage_power : 2;
    pin (A) { direction : input; capacitance : 1; }
    pin (Y) { direction : output; function : "A'";
      timing () { related_pin : "A"; timing_sense : negative_unate;
        cell_rise (d) { values ("10, 12", \\
                                "30, 36"); }
        cell_fall (d) { values ("20, 22", "40, 42"); }
        rise_transition (d) { values ("4, 4", "8, 8"); }
        fall_transition (d) { values ("6, 6", "12, 12"); } } } }
  cell (BIG_NAND) { area : 9; pin (A) { direction : input; capacitance : 2; }
    pin (B) { direction : input; capacitance : 2; }
    pin (Y) { direction : output; function : "!(A B)"; } }
  cell (SMALL_NAND) { area : 2.5; pin (A) { direction : input; capacitance : 2; }
    pin (B) { direction : input; capacitance : 2; }
    pin (Y) { direction : output; function : "A' + !B"; } }
  cell (FREE_NAND) { area : 0.1; dont_use : true; pin (A) { direction : input; capacitance : 2; }
    pin (B) { direction : input; capacitance : 2; } pin (Y) { direction : output; function : "!(A*B)"; } }
  cell (NOR) { area : 0.5; pin (A) { direction : input; capacitance : 2; } pin (B) { direction : input; capacitance : 2; }
    pin (Y) { direction : output; function : "!(A|B)"; } }
  cell (DFF) { area : 6; cell_leakage_power : 5; ff (IQ, IQN) { clocked_on : "CK"; next_state : "D"; }
    pin (CK) { direction : input; clock : true; capacitance : 1; }
    pin (D) { direction : input; capacitance : 2;
      timing () { related_pin : "CK"; timing_type : setup_rising;
        rise_constraint (s) { values ("5, 7", "6, 8"); } fall_constraint (s) { values ("15, 25", "16, 26"); } }
      timing () { related_pin : "CK"; timing_type : hold_rising;
        rise_constraint (s) { values ("900, 900", "900, 900"); } } }
    pin (Q) { direction : output; function : "IQ";
      timing () { related_pin : "CK"; timing_type : rising_edge; timing_sense : non_unate;
        cell_rise (d) { values ("50, 50", "70, 70"); } cell_fall (d) { values ("60, 60", "80, 80"); }
        rise_transition (d) { values ("2, 2", "2, 2"); } fall_transition (d) { values ("2, 2", "2, 2"); } } } }
}
"""


@pytest.fixture
def tiny_file(tmp_path):
    path = tmp_path / "tiny.lib"
    path.write_text(TINY_LIBRARY)
    return path


@pytest.fixture(scope="session")
def nangate45():
    try:
        return pdk.find("nangate45").read()
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def block():
    """A small block of the unit, generated."""
    return generator.kept(CduConfig(), "inverse_shift_quantizer")


@pytest.fixture(scope="session")
def synthesised(block, nangate45, tmp_path_factory):
    """Folder with the netlists of the small block, and its costs by recipe."""
    folder = tmp_path_factory.mktemp("synth")
    return folder, flow.synthesise(block.verilog, block.top, nangate45, 1.0, directory=folder)
