"""SFPR against its definition: the exact product as one wide integer, rounded once."""

from __future__ import annotations

from itertools import pairwise

from cdu.values.sfpr import latency
from cdu_spec.bitstream import Dtype
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES, VALUE_BITS
from cdu_spec.sfpr import SCALE_EXPONENT_LIMIT, VALUE_MAX, VALUE_MIN

from cdu_verif.formal.device import Device
from cdu_verif.formal.stream_rules import with_assumptions


def reference(config: CduConfig) -> str:
    """Verilog of ``sfpr_reference``: bit patterns ``x`` (value format) and ``k`` (float32) to ``q``, combinationally.

    ``|x * k|`` is written as ``product * 2**exponents`` units of ``2**-UNIT``, an integer without any rounding: whole units
    above bit UNIT, the rest below.
    """
    dtype, wide = config.dtype, Dtype.FP32
    fraction, exponent = dtype.fraction_bits, dtype.exponent_bits
    scale_fraction = config.scale_bits - 1
    bias, wide_bias = (1 << (exponent - 1)) - 1, (1 << (wide.exponent_bits - 1)) - 1
    unit = bias + fraction + wide_bias + scale_fraction
    product = fraction + 1 + config.scale_bits
    size = product + (1 << exponent) + (1 << wide.exponent_bits)
    return f"""\
module sfpr_reference (input [{dtype.bits - 1}:0] x, input [{wide.bits - 1}:0] k, output reg signed [{VALUE_BITS - 1}:0] q);
  localparam UNIT = {unit};
  wire sign = x[{dtype.bits - 1}];
  wire [{exponent - 1}:0] exponent = x[{fraction} +: {exponent}];
  wire [{fraction - 1}:0] fraction = x[0 +: {fraction}];
  wire [{fraction}:0] significand = {{exponent != 0, fraction}};
  wire [{scale_fraction}:0] multiplier = {{1'b1, k[{wide.fraction_bits - scale_fraction} +: {scale_fraction}]}};
  wire [{product - 1}:0] product = significand * multiplier;
  wire [{wide.exponent_bits - 1}:0] scale_exponent = k[{wide.fraction_bits} +: {wide.exponent_bits}];
  wire [{wide.exponent_bits + 1}:0] exponents = (exponent == 0 ? 1 : exponent) + scale_exponent;
  wire [{size - 1}:0] exact = {{ {size - product}'d0, product}} << exponents;
  wire [{size - unit - 1}:0] whole = exact[{size - 1}:UNIT];
  wire [UNIT-1:0] rest = exact[UNIT-1:0];
  wire [UNIT-1:0] half = {{1'b1, {{(UNIT-1){{1'b0}}}}}};
  wire [{size - unit}:0] magnitude = whole + (rest > half || (rest == half && whole[0]));
  wire infinite = &exponent;
  wire [{VALUE_BITS - 1}:0] low = magnitude[{VALUE_BITS - 1}:0];
  always @* begin
    if (&exponent && fraction != 0) q = 0;
    else if (sign) q = infinite || magnitude >= {-VALUE_MIN} ? {VALUE_BITS}'d{-VALUE_MIN} : -low;
    else q = infinite || magnitude >= {VALUE_MAX} ? {VALUE_BITS}'d{VALUE_MAX} : low;
  end
endmodule
"""


def scale_assumption(config: CduConfig, scale: str) -> str:
    """Verilog: the multiplier is in its range; its lower significand bits, which should be zero, are free."""
    bias = (1 << (Dtype.FP32.exponent_bits - 1)) - 1
    field = f"{scale}[{Dtype.FP32.fraction_bits} +: {Dtype.FP32.exponent_bits}]"
    low, high = bias - SCALE_EXPONENT_LIMIT, bias + SCALE_EXPONENT_LIMIT
    return f"  always @* assume (!{scale}[31] && {field} >= {low} && {field} <= {high});\n"


def arithmetic_harness(config: CduConfig, device: Device, stalls: bool) -> str:
    """Every lane of every transfer equals the reference of the input that it belongs to.

    Without ``stalls`` the output is always ready, so that results are due a fixed time after the input.
    """
    bits = config.dtype.bits
    lines = [f"  wire [31:0] scale = i__payload[{LANES * bits} +: 32];\n", scale_assumption(config, "scale")]
    lines.append(f"  wire binary = i__payload[{LANES * bits + 32}];\n  always @* assume (!binary);\n")
    lines.append("  wire advance = ~o__valid | o__ready;\n")
    if not stalls:
        lines.append("  always @* assume (o__ready);\n")
    for lane in range(LANES):
        stages = [f"expected{lane}_{stage}" for stage in range(latency(config) + 1)]
        lines.append(f"  wire [{VALUE_BITS - 1}:0] {stages[0]};\n  reg [{VALUE_BITS - 1}:0] {', '.join(stages[1:])};\n")
        lines.append(
            f"  sfpr_reference reference{lane} (.x(i__payload[{lane * bits} +: {bits}]), .k(scale), .q({stages[0]}));\n"
        )
        for before, after in pairwise(stages):
            lines.append(f"  always @(posedge clk) if (advance) {after} <= {before};\n")
        q = f"o__payload[{lane * VALUE_BITS} +: {VALUE_BITS}]"
        lines.append(f"  always @* if (started && o__valid) lane{lane}: assert ({q} == {stages[-1]});\n")
    return reference(config) + with_assumptions(device, "".join(lines), resets=stalls)
