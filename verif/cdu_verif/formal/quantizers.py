"""Shift quantiser and its inverse against their definitions, for all coefficients, shifts and stalls."""

from __future__ import annotations

from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, SHIFT_BITS, VALUE_BITS
from cdu_spec.rounding import Rounding
from cdu_spec.sfpr import VALUE_MAX, VALUE_MIN

from cdu_verif.formal.device import Device
from cdu_verif.formal.stream_rules import with_assumptions


def forward_reference(config: CduConfig) -> str:
    """Verilog of ``reference``: ``q = sat8(round(c / 2**shift))``, by division."""
    bits = config.coefficient_bits
    half = "0" if config.rounding_mode is Rounding.TRUNC else "step / 2"
    return f"""\
module reference (input signed [{bits - 1}:0] x, input [{SHIFT_BITS - 1}:0] shift, output signed [{VALUE_BITS - 1}:0] y);
  wire [31:0] step = 1 << shift;
  wire [31:0] magnitude = x < 0 ? -x : x;
  wire [31:0] rounded = (magnitude + {half}) >> shift;
  assign y = x < 0 ? (rounded > {-VALUE_MIN} ? {VALUE_MIN} : -rounded) : (rounded > {VALUE_MAX} ? {VALUE_MAX} : rounded);
endmodule
"""


def inverse_reference(config: CduConfig) -> str:
    """Verilog of ``reference``: ``c = sat12(q * 2**shift)``."""
    bits = config.coefficient_bits
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return f"""\
module reference (input signed [{VALUE_BITS - 1}:0] x, input [{SHIFT_BITS - 1}:0] shift, output signed [{bits - 1}:0] y);
  wire signed [31:0] exact = x * (1 << shift);
  assign y = exact < {low} ? {low} : exact > {high} ? {high} : exact;
endmodule
"""


def quantizer_harness(config: CduConfig, device: Device, inverse: bool) -> str:
    """Every lane of every transfer equals the reference of the transfer before it, with the shift of its column.

    Columns are counted from reset; shifts and bank are free, an entry counts in the cycle in which its column enters.
    """
    x_bits, y_bits = (VALUE_BITS, config.coefficient_bits) if inverse else (config.coefficient_bits, VALUE_BITS)
    size = BLOCK_SIDE * SHIFT_BITS
    lines = [f"  reg [{BLOCK_SIDE.bit_length() - 2}:0] column;"]
    lines.append("  always @(posedge clk) column <= rst ? 0 : column + (i__valid & i__ready);")
    lines.append(f"  wire [{size - 1}:0] shifts_of_column = shifts >> ({size} * {{bank, column}});")
    for lane in range(LANES):
        shift = f"shifts_of_column[{lane * SHIFT_BITS} +: {SHIFT_BITS}]"
        lines += [
            f"  wire [{y_bits - 1}:0] result{lane};\n  reg [{y_bits - 1}:0] expected{lane};",
            f"  reference reference{lane} (.x(i__payload[{lane * x_bits} +: {x_bits}]), .shift({shift}), .y(result{lane}));",
            f"  always @(posedge clk) if (i__valid & i__ready) expected{lane} <= result{lane};",
            f"  always @* if (started && o__valid) lane{lane}:"
            f" assert (o__payload[{lane * y_bits} +: {y_bits}] == expected{lane});",
        ]
    made = inverse_reference(config) if inverse else forward_reference(config)
    return made + with_assumptions(device, "\n".join(lines) + "\n")
