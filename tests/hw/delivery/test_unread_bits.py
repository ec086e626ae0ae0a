"""Bits without a reader are found as Verilator finds them, and made-up nets lose theirs."""

import re

import pytest
from cdu.delivery.unread_bits import named_unused, unread
from cdu_tools import verilator

TEXT = """\
module top (
  input  wire clk,
  input  wire [7:0] i,
  input  wire spare,
  output reg  [3:0] o,
  output wire part__o
);
  wire _0_;
  wire [9:0] _1_;
  wire [4:0] _2_;
  wire [15:0] _3_;
  wire [7:0] _4_;
  wire [3:0] _5_;
  wire [3:0] \\rounded ;
  wire [3:0] unused_5;
  reg [3:0] kept;
  reg [1:0] storage [3:0];
  wire other;
  assign { \\rounded , _1_[4:0] } = { 1'h0, i } + 9'h010;
  assign _1_[9:5] = { \\rounded , other };
  assign _2_[3:1] = i[3:1];
  assign part__o = _2_[2] ^ storage[o[1:0]][0];
  assign _3_[11:4] = _4_;
  assign _4_ = ~ i;
  assign _0_ = ^ i[7:6];
  assign { _5_[3], unused_5[2:0] } = ~ \\rounded ;
  always @(posedge clk)
    if (_0_) o <= 4'h0;
    else if (!other) o <= \\rounded ;
  always @(posedge clk)
    kept[1:0] <= i[1:0];
  always @(posedge clk)
    storage[o[1:0]] <= i[5:4];
  top__part part (
    .a(i[7]),
    .o(other),
    .more(kept[1])
  );
  initial begin
    o = 4'h0;
  end
endmodule

module top__part (
  input  wire a,
  output wire o,
  output wire more
);
  assign o = a;
  assign more = 1'h0;
endmodule
"""


def test_what_nothing_reads_is_called_unused_or_goes():
    text = named_unused(TEXT)
    assert "  assign { \\rounded , unused_1[4:0] } = { 1'h0, i } + 9'h010;\n" in text
    assert "  wire [4:0] unused_1;\n" in text
    assert "  wire [3:1] _2_;\n" in text
    assert not re.search(r"_[134]_\\b|\\b_5_", text.replace("unused_1", ""))
    assert "  assign { unused_5_[3], unused_5[2:0] } = ~ \\rounded ;\n" in text, "a name that there was"
    assert text.partition("module top__part")[2] == TEXT.partition("module top__part")[2]


def test_the_others_are_listed():
    assert [said for _, said in unread(named_unused(TEXT))] == [
        "spare: not needed here",
        "_2_[3, 1]: nothing takes it",
        "kept[3:0]: nothing takes it",
    ]


@pytest.mark.parametrize("text", [TEXT, named_unused(TEXT)], ids=["as_written", "named"])
def test_verilator_finds_the_same(text, tmp_path):
    path = tmp_path / "top.v"
    path.write_text(text)
    found = re.findall(r"%Warning-UNUSEDSIGNAL: [^:]+:(\d+):", verilator.find().lint(path))
    assert {int(line) for line in found} == {line for line, _ in unread(text)}
