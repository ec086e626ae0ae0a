"""Property modules of a user: they are bound by names, proven and simulated, and see faults that are planted."""

import pytest
from cdu.delivery import generator
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_tools.errors import UserError
from cdu_verif.formal import user_properties
from cdu_verif.formal.proof import prove
from cdu_verif.regression import plan, regression, results
from tools_here import needs_provers

UNIT = CduConfig(modes=("brc",))
LITE = """\
/* Answers of a slave, with ports in the style of one project; module no_module (input a); */
module lite_slave_answers #(
  parameter C_AXI_DATA_WIDTH = 64, parameter C_AXI_ADDR_WIDTH = 8,
  localparam LOW = 3, localparam DW = C_AXI_DATA_WIDTH
) (
  input  wire i_clk, // rising edge
  input  wire i_axi_reset_n,
  input  wire i_axi_awvalid, i_axi_awready,
  input  wire [C_AXI_ADDR_WIDTH-1:0] i_axi_awaddr,
  input  wire [2:0] i_axi_awprot, input wire [3:0] i_axi_awcache,
  input  wire i_axi_arvalid, i_axi_arready,
  input  wire i_axi_rvalid, i_axi_rready,
  input  wire [C_AXI_DATA_WIDTH-1:0] i_axi_rdata,
  output reg  held
);
  reg [C_AXI_DATA_WIDTH-1:0] offered;
  reg [3:0] asked = 0;
  initial held = 0;
  always @(posedge i_clk) begin
    held <= i_axi_reset_n && i_axi_rvalid && !i_axi_rready;
    offered <= i_axi_rdata;
    asked <= i_axi_reset_n ? asked + (i_axi_arvalid && i_axi_arready) - (i_axi_rvalid && i_axi_rready) : 0;
    if (i_axi_reset_n) begin
      if (held) stays: assert (i_axi_rvalid && i_axi_rdata == offered);
      if (i_axi_rvalid) once: assert (asked != 0);
    end
  end
endmodule
"""
STREAM = """\
module stream_rules_of_mine #(parameter int DATA_WIDTH = 8) (
  input ACLK, input ARESETn, input [DATA_WIDTH-1:0] TDATA, input [DATA_WIDTH/8-1:0] TSTRB, input TVALID, TREADY, TLAST
);
endmodule
"""
FULL = """\
module axi_manager (input clk, rst, input awvalid, awready, wvalid, wlast, input [7:0] awlen, input [3:0] awqos);
endmodule
"""


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes modules into a folder."""

    def write(**texts):
        place = tmp_path / "properties"
        place.mkdir(exist_ok=True)
        for name, text in texts.items():
            (place / f"{name}.sv").write_text(text)
        return place

    return write


def bound(folder, config):
    return user_properties.instances(folder, generator.kept(config).manifest["ports"], config)


def test_modules_are_bound_by_the_names_of_their_ports(folder):
    found = bound(folder(lite=LITE, stream=STREAM), UNIT)
    streams = {"s_axis", "s_axis_scale", "m_axis", "s_axis_packed", "s_axis_reciprocal", "m_axis_values"}
    assert set(found) == {"lite_slave_answers_s_axil", *(f"stream_rules_of_mine_{name}" for name in streams)}
    lite, stream = found["lite_slave_answers_s_axil"], found["stream_rules_of_mine_m_axis"]
    for text in (".C_AXI_DATA_WIDTH(32)", ".C_AXI_ADDR_WIDTH(12)", ".i_clk(clk)", ".i_axi_reset_n(!rst)"):
        assert text in lite
    assert ".i_axi_rdata(s_axil_rdata)" in lite
    assert ".i_axi_awcache('0)" in lite, "AXI4-Lite has no AWCACHE"
    assert "held" not in lite
    assert ".DW" not in lite, "localparams have no values from outside"
    for text in (".DATA_WIDTH(128)", ".TDATA(m_axis_tdata)", ".TSTRB(m_axis_tkeep)", ".ACLK(clk)"):
        assert text in stream


@pytest.mark.campaign
def test_roles_and_clocks_are_those_of_the_interface(folder):
    config = CduConfig(modes=("brc",), dma_bits=64, own_clocks=("registers",), reset_kind="async", reset_active="low")
    found = bound(folder(lite=LITE, stream=STREAM, full=FULL), config)
    assert set(found) == {"lite_slave_answers_s_axil", "axi_manager_m_axi"}
    assert ".i_clk(registers_clk)" in found["lite_slave_answers_s_axil"]
    assert ".i_axi_reset_n(registers_aresetn)" in found["lite_slave_answers_s_axil"]
    assert ".rst(!aresetn)" in found["axi_manager_m_axi"]
    assert not user_properties.bind(folder(), "unit", generator.kept(config).manifest["ports"], config).count("stream_rules")
    with pytest.raises(ConfigError, match="needs one clock"):
        user_properties.properties(folder(), config)


def test_what_cannot_be_bound_is_named(folder, tmp_path):
    with pytest.raises(UserError, match=r"input mode of stream_rules_of_mine is no clock, reset or signal of AXI"):
        bound(folder(stream=STREAM.replace("TREADY,", "TREADY, mode,")), UNIT)
    with pytest.raises(UserError, match=r"no module .* fits an interface of the unit: it has s_axis \(AXI4-Stream\)"):
        bound(folder(stream=FULL), UNIT)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"has no \.sv or \.v file"):
        user_properties.files(tmp_path / "empty")


def repeats_answers(text):
    """Return Verilog in which the registers do not stop to offer an answer that was taken."""
    faulty = text.replace("rready ? 1'h0 : rvalid", "rready ? rvalid : rvalid")
    assert faulty != text
    return faulty


@needs_provers
def test_assertions_are_proven_and_see_a_fault(folder, tmp_path):
    (what,) = user_properties.properties(folder(lite=LITE), UNIT)
    assert what.label == "array/lite_slave_answers_s_axil"
    assert prove(what, tmp_path / "right").proven
    verdict = prove(what, tmp_path / "wrong", repeats_answers)
    assert not verdict.proven
    assert "once" in verdict.message


@pytest.mark.parametrize(
    "mutate", [pytest.param(None, id="right", marks=pytest.mark.campaign), pytest.param(repeats_answers, id="wrong")]
)
def test_simulations_check_assertions_and_see_a_fault(folder, tmp_path, mutate):
    settings = regression.RunSettings(tmp_path / "run", tests=("any_address",), properties=folder(lite=LITE))
    outcome = regression.simulate(plan.PlannedRun(plan.ARRAY, UNIT, (("modes", "brc"),)), settings, mutate)
    (test,) = outcome.tests
    assert (test.status == results.PASSED) == (mutate is None), test.message
    if mutate:
        assert "once" in test.message
