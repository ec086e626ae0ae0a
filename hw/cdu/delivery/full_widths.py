"""Explicit operand widths, as Verilog would extend them: ``{ 4'h0, amount } + level``, ``phase == 2'h0``.

In RTLIL each input of a cell has a width of its own. Verilog silently extends the shorter ones, and linters warn of that,
since it may be a mistake. Here the text makes the widths explicit, as RTLIL does.
"""

from __future__ import annotations

#: Cells whose result and operands have one width, and cells that compare two operands of one width.
_SAME = ("add", "sub", "mul", "and", "or", "xor", "xnor")
_COMPARING = ("lt", "le", "eq", "ne", "ge", "gt")
#: Cells whose only operand has the width of the result, and shifts, whose first operand has.
_UNARY = ("not", "neg", "pos")
_SHIFTING = ("shl", "shr", "sshl", "sshr", "shift")

_PARAMETERS = "  parameter A_SIGNED = 0, A_WIDTH = 1, B_SIGNED = 0, B_WIDTH = 1, Y_WIDTH = 1;"
#: The operand ``{0}`` as ``{1}`` with WIDTH bits. Sums and products need no more bits than their results; one of no bits is 0.
_EXTENDED = """\
  wire [WIDTH-1:0] {1};
  generate
    if ({0}_WIDTH >= WIDTH) assign {1} = {0}[WIDTH-1:0];
    else if ({0}_WIDTH == 0) assign {1} = {{WIDTH{{1'b0}}}};
    else assign {1} = {{{{(WIDTH-{0}_WIDTH){{{2} ? {0}[{0}_WIDTH-1] : 1'b0}}}}, {0}}};
  endgenerate
"""
_TWO = """\
(* techmap_celltype = "${op}" *)
module full_{op} (input [A_WIDTH-1:0] A, input [B_WIDTH-1:0] B, output [Y_WIDTH-1:0] Y);
{parameters}
  localparam SIGNED = A_SIGNED && B_SIGNED;
  localparam WIDTH = {width};
  wire _TECHMAP_FAIL_ = A_WIDTH == WIDTH && B_WIDTH == WIDTH;
{a}{b}  \\${op} #(.A_SIGNED(SIGNED), .B_SIGNED(SIGNED), .A_WIDTH(WIDTH), .B_WIDTH(WIDTH), .Y_WIDTH(Y_WIDTH))
    _TECHMAP_REPLACE_ (.A(a), .B(b), .Y(Y));
endmodule
"""
_ONE = """\
(* techmap_celltype = "${op}" *)
module full_{op} (input [A_WIDTH-1:0] A, output [Y_WIDTH-1:0] Y);
{parameters}
  localparam WIDTH = Y_WIDTH;
  wire _TECHMAP_FAIL_ = A_WIDTH == WIDTH;
{a}  \\${op} #(.A_SIGNED(A_SIGNED), .A_WIDTH(WIDTH), .Y_WIDTH(WIDTH)) _TECHMAP_REPLACE_ (.A(a), .Y(Y));
endmodule
"""
#: A result narrower than the shifted operand loses bits, which then have a name.
_SHIFT = """\
(* techmap_celltype = "${op}" *)
module full_{op} (input [A_WIDTH-1:0] A, input [B_WIDTH-1:0] B, output [Y_WIDTH-1:0] Y);
{parameters}
  localparam WIDTH = A_WIDTH > Y_WIDTH ? A_WIDTH : Y_WIDTH;
  wire _TECHMAP_FAIL_ = A_WIDTH == Y_WIDTH;
  wire [WIDTH-1:0] y;
  assign Y = y[Y_WIDTH-1:0];
{a}  \\${op} #(.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(WIDTH), .B_WIDTH(B_WIDTH), .Y_WIDTH(WIDTH))
    _TECHMAP_REPLACE_ (.A(a), .B(B), .Y(y));
endmodule
"""
#: ``!count`` of several bits is a comparison.
_NOT_ANY = """\
(* techmap_celltype = "$logic_not" *)
module full_logic_not (input [A_WIDTH-1:0] A, output [Y_WIDTH-1:0] Y);
{parameters}
  wire _TECHMAP_FAIL_ = A_WIDTH == 1;
  \\$eq #(.A_SIGNED(0), .B_SIGNED(0), .A_WIDTH(A_WIDTH), .B_WIDTH(A_WIDTH), .Y_WIDTH(Y_WIDTH))
    _TECHMAP_REPLACE_ (.A(A), .B({{A_WIDTH{{1'b0}}}}), .Y(Y));
endmodule
"""


def full_widths() -> str:
    """Return Verilog for Yosys' ``techmap``, which replaces cells by ones with operands of full width."""

    def written(form: str, op: str = "", signed: str = "A_SIGNED", width: str = "Y_WIDTH") -> str:
        a, b = (_EXTENDED.format(operand, operand.lower(), signed) for operand in "AB")
        return form.format(op=op, parameters=_PARAMETERS, a=a, b=b, width=width)

    same = [written(_TWO, op, "SIGNED") for op in _SAME]
    comparing = [written(_TWO, op, "SIGNED", "A_WIDTH > B_WIDTH ? A_WIDTH : B_WIDTH") for op in _COMPARING]
    unary, shifting = ([written(form, op) for op in ops] for form, ops in ((_ONE, _UNARY), (_SHIFT, _SHIFTING)))
    return "\n".join([*same, *comparing, *unary, *shifting, written(_NOT_ANY)])
