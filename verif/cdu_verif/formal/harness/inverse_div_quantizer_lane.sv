// A lane's coefficient is the product of the quantised one and its divisor, or the limit of a coefficient that it is beyond.
module inverse_div_quantizer_lane #(
  parameter int C_BITS,
  parameter int DIVISOR_BITS
) (
  input clk, rst, started, advance,
  input [C_BITS-1:0] q,
  input [DIVISOR_BITS-1:0] d,
  // of the device, by stage
  input [1:0] valid,
  input [DIVISOR_BITS-1:0] divisor,
  input [C_BITS+DIVISOR_BITS-1:0] product,
  input [C_BITS-1:0] c
);
  localparam int MAX = (1 << (C_BITS - 1)) - 1;

  // The device's own divisor, which is d: to show that products of equal numbers are equal takes long
  reg signed [C_BITS+DIVISOR_BITS-1:0] exact, exact_before;
  always @(posedge clk) if (advance) begin
    exact <= $signed(q) * $signed({1'b0, divisor});
    exact_before <= exact;
  end
  wire [C_BITS-1:0] limited = exact_before > MAX ? MAX : exact_before < -MAX - 1 ? -MAX - 1 : exact_before;
  always @* if (started & ~rst) begin
    divided: assert (divisor == d);
    if (valid[0]) product1: assert (product == exact);
    if (valid[1]) limited2: assert (c == limited);
  end
endmodule
