// One lane of the affine dequantiser: y = Z + code * D, in integers of 40 bits and in the 17 that leave.
module affine_dequantizer_lane #(
  parameter int VALUE_BITS,
  parameter int DECODED_BITS,
  parameter int DECODED_MAX  // greatest magnitude of a decoded integer
) (
  input clk, started, advance,
  input i__valid, affine,
  input [7:0] most_code,
  input [2:1] full,               // the stages that hold a row
  input [7:0] mantissa,           // m of the row that enters
  input signed [39:0] low1,       // Z of the row in stage 1
  input [3:0] exponent1,
  input signed [39:0] limit1,     // greatest product there
  input [VALUE_BITS-1:0] value,
  input signed [DECODED_BITS-1:0] decoded,
  input [VALUE_BITS-1:0] inner_code,
  input [7:0] inner_mantissa,
  input [15:0] inner_product
);
  wire [7:0] code = affine ? value : value + (1 << (VALUE_BITS - 1));
  reg [15:0] product;
  reg signed [39:0] y;
  wire [39:0] distance = {24'd0, product} << exponent1;
  wire signed [39:0] sum = low1 + $signed(distance);
  always @(posedge clk) if (advance) begin
    product <= inner_code * inner_mantissa;
    y <= sum;
  end

  always @* if (i__valid & affine) assume (code <= most_code);
  always @* if (started) begin
    if (i__valid) operands: assert (inner_code == code && inner_mantissa == mantissa);
    if (full[1]) begin
      multiplied: assert (inner_product == product);
      monotone: assert (product <= limit1);
      in_range: assert (sum >= -DECODED_MAX && sum <= DECODED_MAX);
    end
    if (full[2]) arithmetic: assert (decoded == y && y >= -DECODED_MAX && y <= DECODED_MAX);
  end
endmodule
