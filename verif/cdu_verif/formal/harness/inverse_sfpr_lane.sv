// One lane of the inverse of SFPR: the number that leaves is q * r.
module inverse_sfpr_lane #(
  parameter int VALUE_BITS,
  parameter int RECIPROCAL_BITS
) (
  input clk, started, advance,
  input [3:1] full,                    // the stages that hold a row
  input signed [VALUE_BITS-1:0] q,     // of the row that enters
  input [RECIPROCAL_BITS-1:0] multiplier,  // significand of the reciprocal of stage 1
  input [7:0] exponent3,               // that of the row that leaves
  input [31:0] y,
  input [VALUE_BITS-1:0] inner_normalized1,
  input [2:0] inner_zeros1, inner_zeros2,
  input inner_sign1, inner_sign2, inner_zero1, inner_zero2,
  input [VALUE_BITS+RECIPROCAL_BITS-1:0] inner_product
);
  localparam int FRACTION_BITS = 23;   // of float32
  localparam int PRODUCT_BITS = VALUE_BITS + RECIPROCAL_BITS;
  localparam int SIZE = FRACTION_BITS + 1 + 2 * VALUE_BITS;

  reg signed [VALUE_BITS-1:0] q1, q2, q3;
  reg [PRODUCT_BITS-1:0] product2, product3;
  reg [2:0] zeros2, zeros3;
  always @(posedge clk) if (advance) begin
    q1 <= q;
    q2 <= q1;
    q3 <= q2;
    product2 <= inner_normalized1 * multiplier;
    product3 <= product2;
    zeros2 <= inner_zeros1;
    zeros3 <= zeros2;
  end

  wire [VALUE_BITS-1:0] magnitude1 = q1 < 0 ? -q1 : q1;
  wire [2*VALUE_BITS-1:0] shifted1 = {{VALUE_BITS{1'b0}}, magnitude1} << inner_zeros1;

  // q * r is the product times 2 to the power of what is below its leading one; y is its significand times another power.
  wire [SIZE-1:0] exact = product3 << (FRACTION_BITS + 1 - RECIPROCAL_BITS + VALUE_BITS - 1 - zeros3);
  wire [7:0] distance = y[30:23] - exponent3;
  wire [SIZE-1:0] given = {1'b1, y[FRACTION_BITS-1:0]} << (distance + VALUE_BITS - 1);

  always @* if (started) begin
    if (full[1]) begin
      sign1: assert (inner_sign1 == (q1 < 0) && inner_zero1 == (q1 == 0));
      shifted: assert (shifted1 == inner_normalized1);
      leading: assert (q1 == 0 || inner_normalized1[VALUE_BITS-1]);
    end
    if (full[2]) begin
      sign2: assert (inner_sign2 == (q2 < 0) && inner_zero2 == (q2 == 0));
      multiplied: assert (inner_product == product2 && inner_zeros2 == zeros2);
      top2: assert (q2 == 0 || product2 >= 1 << (PRODUCT_BITS - 2));
    end
    if (full[3]) begin
      top3: assert (q3 == 0 || product3 >= 1 << (PRODUCT_BITS - 2));
      if (q3 == 0) none: assert (y == 0);
      else begin
        sign3: assert (y[31] == (q3 < 0));
        exponent: assert (distance + VALUE_BITS - 1 <= 2 * VALUE_BITS - 1);
        arithmetic: assert (given == exact);
      end
    end
  end
endmodule
