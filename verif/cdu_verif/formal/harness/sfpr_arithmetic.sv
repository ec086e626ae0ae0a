// Every lane of every transfer of SFPR equals the reference of the input that it belongs to.
//
// Without STALLS the output is always ready, so that results are due a fixed time after the input. The scale is in its range;
// its lower significand bits, which should be zero, are free. What is absent becomes 0.
module sfpr_arithmetic #(
  parameter int LANES,
  parameter int LATENCY,              // cycles from input to output
  parameter bit STALLS,
  parameter int EXPONENT_BITS,
  parameter int FRACTION_BITS,
  parameter int SCALE_BITS,
  parameter int SCALE_EXPONENT_LIMIT,
  parameter int VALUE_MIN,
  parameter int VALUE_MAX,
  parameter int VALUE_BITS
) (
  input clk, started,
  input o__valid, o__ready,
  input [LANES-1:0][EXPONENT_BITS+FRACTION_BITS:0] i_values,
  input [31:0] i_scale,
  input i_binary, i_absent,
  input [LANES-1:0][VALUE_BITS-1:0] o_values
);
  localparam int BIAS = 127;  // of float32
  wire [7:0] exponent = i_scale[23 +: 8];
  always @* begin
    assume (!i_scale[31] && exponent >= BIAS - SCALE_EXPONENT_LIMIT && exponent <= BIAS + SCALE_EXPONENT_LIMIT);
    assume (!i_binary);
    assume (STALLS || o__ready);
  end

  wire advance = ~o__valid | o__ready;
  generate
    for (genvar n = 0; n < LANES; n++) begin : lane
      wire [VALUE_BITS-1:0] q, result;
      assign result = i_absent ? 0 : q;
      wire [LATENCY:0][VALUE_BITS-1:0] expected;
      sfpr_reference #(
        .EXPONENT_BITS(EXPONENT_BITS), .FRACTION_BITS(FRACTION_BITS), .SCALE_BITS(SCALE_BITS),
        .VALUE_MIN(VALUE_MIN), .VALUE_MAX(VALUE_MAX), .VALUE_BITS(VALUE_BITS)
      ) reference (.x(i_values[n]), .k(i_scale), .*);
      pipeline #(.WIDTH(VALUE_BITS), .STAGES(LATENCY)) due (.value(result), .at(expected), .*);
      expected_value #(.WIDTH(VALUE_BITS)) rule (.valid(o__valid), .value(o_values[n]), .expected(expected[LATENCY]), .*);
    end
  endgenerate
endmodule
