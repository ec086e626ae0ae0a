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
STREAMS = ("s_axis", "s_axis_scale", "m_axis", "s_axis_packed", "s_axis_reciprocal", "m_axis_values")


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
    found = user_properties.instances(folder, generator.kept(config).manifest["ports"], config)
    return {name: one.text for name, one in found.items()}


def test_modules_are_bound_by_the_names_of_their_ports(folder):
    found = bound(folder(lite=LITE, stream=STREAM), UNIT)
    assert set(found) == {"lite_slave_answers_s_axil", *(f"stream_rules_of_mine_{name}" for name in STREAMS)}
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
    found = bound(folder(lite=LITE, full=FULL), config)
    assert set(found) == {"lite_slave_answers_s_axil", "axi_manager_m_axi"}
    assert ".i_clk(registers_clk)" in found["lite_slave_answers_s_axil"]
    assert ".i_axi_reset_n(registers_aresetn)" in found["lite_slave_answers_s_axil"]
    assert ".rst(!aresetn)" in found["axi_manager_m_axi"]
    assert user_properties.bind(folder(), "unit", generator.kept(config).manifest["ports"], config).count("bind unit") == 2
    with pytest.raises(ConfigError, match="needs one clock"):
        user_properties.properties(folder(), config)


@pytest.mark.parametrize(
    ("reset", "to"),
    [
        *((name, "!rst") for name in ("rst_n", "rst_ni", "rst_n_i", "aresetn", "S_AXI_ARESETn", "resetn_sync", "reset_n")),
        *((name, "rst") for name in ("rst", "rst_i", "rst_in", "reset", "areset", "i_reset", "sys_rst_sync")),
        *((name, None) for name in ("nrst", "n_rst", "rst_b", "rstb", "reset_l", "not_reset", "burst")),
    ],
)
def test_the_level_of_a_reset_is_in_its_name(reset, to, folder):
    place = folder(stream=STREAM.replace("ARESETn", reset))
    if to is None:
        with pytest.raises(UserError, match=rf"no signal of s_axis is left for {reset}, which .* low rst_n, rst_ni"):
            bound(place, UNIT)
    else:
        assert f".{reset}({to})" in bound(place, UNIT)["stream_rules_of_mine_s_axis"]
        assert {what.statement for what in user_properties.properties(place, UNIT)} == {
            f"The assertions of stream_rules_of_mine_{name} hold, {reset} = {to}." for name in STREAMS
        }


#: Heads of one module that never holds, of a read channel alone.
HEADS = {
    "ansi": "module never (input clk, rst_ni, input arvalid, arready, rvalid, rready);",
    "attribute": "(* keep *) module never (input clk, (* mark *) input rst_ni, input wire arvalid, arready, rvalid, rready);",
    "old": "module never (clk, rst_ni, arvalid, arready, rvalid, rready);\n"
    "  input clk, rst_ni;\n  input wire arvalid, arready;\n  input rvalid; input rready;",
    "import": "module automatic never import one::*, two::*; (input clk, rst_ni, arvalid, arready, rvalid, rready);",
}
NEVER = "\n  always @(posedge clk) if (rst_ni && arvalid) never_read: assert (1'b0);\nendmodule\n"


@pytest.mark.parametrize("head", HEADS)
def test_heads_of_every_style_are_read(head, folder):
    found = bound(folder(never=f'string s = "module a; // ";\n{HEADS[head]}{NEVER}', stream=STREAM), UNIT)
    assert found.keys() == {"never_s_axil", *(f"stream_rules_of_mine_{name}" for name in STREAMS)}
    for name, to in [("clk", "clk"), ("rst_ni", "!rst"), *((name, f"s_axil_{name}") for name in ("arvalid", "rready"))]:
        assert f".{name}({to})" in found["never_s_axil"]


def test_parameters_may_be_declared_in_the_body(folder):
    place = folder(old="module old (clk, tvalid, tdata);\nparameter DW = 8; input clk, tvalid; input [DW-1:0] tdata; endmodule")
    assert "#(.DW(128))" in bound(place, UNIT)["old_m_axis"]


DMA = CduConfig(modes=("brc",), dma_bits=64)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("inputs", "interfaces"),
    [
        ("awvalid, awready", {"s_axil", "m_axi"}),
        ("arvalid, rvalid, rresp", {"s_axil", "m_axi"}),
        ("axi_awvalid, axi_awready, axi_awlen, axi_awburst", {"m_axi"}),
        ("arvalid, rvalid, rlast", {"m_axi"}),
        ("arvalid, arid", {"m_axi"}),
    ],
)
def test_a_module_is_bound_where_all_of_its_inputs_are(inputs, interfaces, folder):
    assert bound(folder(rules=f"module rules (input clk, {inputs}); endmodule"), DMA).keys() == {
        f"rules_{name}" for name in interfaces
    }


HELPER = "module helper #(parameter W = 1) (input clk, x);\nendmodule\n"


def test_a_module_that_another_one_instantiates_is_not_bound(folder):
    for instance in (
        "helper one (clk, TVALID);",
        "helper #(.W(2)) one (.clk(ACLK), .x(TVALID));",
        "helper two [1:0] (ACLK, TVALID);",
    ):
        place = folder(stream=STREAM.replace("endmodule", f"{instance}\nendmodule"), helper=HELPER)
        assert bound(place, UNIT).keys() == {f"stream_rules_of_mine_{name}" for name in STREAMS}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            STREAM.replace("TREADY,", "TREADY, mode,"),
            r"module stream_rules_of_mine of .*no signal of s_axis is left for mode",
        ),
        (STREAM.replace("TREADY,", "TREADY, other_tready,"), r"no signal of s_axis is left for other_tready"),
        (STREAM.replace("ACLK", "ACLKEN"), r"left for ACLKEN, which is no clock \(clk"),
        (FULL, r"module axi_manager of .*, s_axil \(AXI4-Lite\): no signal of s_axil is left for wlast, awlen"),
        (
            FULL.replace("wlast, input [7:0] awlen, ", ""),
            r"in its name asks for the other direction; correct or remove it",
        ),
        (HELPER, "module helper of rules.sv fits no interface of the unit, s_axis .* is left for x"),
        ("module top;\nendmodule", "module top of rules.sv .*it has no input of AXI"),
        (STREAM.replace("rules_of_mine", "of_lite") + STREAM, None),
        (STREAM + STREAM, r"rules\.sv and rules\.sv both have a module stream_rules_of_mine: rename or remove one"),
        ("module \\odd$ (input clk, tvalid);\nendmodule", r"rules\.sv: cannot read the head of module"),
    ],
)
def test_a_module_that_fits_nothing_is_refused_beside_one_that_fits(text, message, folder):
    place = folder(lite=LITE, rules=text)
    if message is None:
        assert len(bound(place, UNIT)) == 1 + 2 * len(STREAMS)
        return
    with pytest.raises(UserError, match=message) as caught:
        bound(place, UNIT)
    assert "\n" not in str(caught.value)


def test_a_folder_needs_a_module_to_bind(folder, tmp_path):
    with pytest.raises(UserError, match="needs a module that no other one instantiates"):
        bound(folder(package="package one;\nendpackage"), UNIT)
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


@needs_provers
@pytest.mark.parametrize("head", ["ansi", *(pytest.param(head, marks=pytest.mark.campaign) for head in ("attribute", "old"))])
def test_what_never_holds_is_not_proven(head, folder, tmp_path):
    (what,) = user_properties.properties(folder(never=HEADS[head] + NEVER), UNIT)
    verdict = prove(what, tmp_path / "proof")
    assert not verdict.proven
    assert "never_read" in verdict.message


def test_a_simulation_sees_what_never_holds(folder, tmp_path):
    settings = regression.RunSettings(tmp_path / "run", tests=("any_address",), properties=folder(never=HEADS["old"] + NEVER))
    (test,) = regression.simulate(plan.PlannedRun(plan.ARRAY, UNIT, (("modes", "brc"),)), settings).tests
    assert test.status != results.PASSED
    assert "never_read" in test.message


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
