// Every lane of the inverse of SFPR gives the float32 number q * r, which needs no rounding, for all transfers and any stalls.
//
// What every register of a lane must hold is proven of one stage after the other: that an integer is shifted up until its
// leading one is at the top, that the product is that of the integer and of the significand, that the number which leaves is
// this product with the shift taken back. The reciprocal is in its range; its lower significand bits, which should be zero,
// are free.
module inverse_sfpr_arithmetic #(
  parameter int LANES,
  parameter int VALUE_BITS,
  parameter int RECIPROCAL_BITS,      // significant bits of r that count, the leading one included
  parameter int SCALE_EXPONENT_LIMIT
) (
  input clk, rst, started,
  input i__valid, o__valid, o__ready,
  input [LANES-1:0][VALUE_BITS-1:0] i_values,
  input [31:0] i_scale,
  input [LANES-1:0][31:0] o_values,
  // Registers of the block, by stage and by lane
  input [2:0] inner_valid,
  input [31:0] inner_scale1,
  input [7:0] inner_exponent2,
  input [LANES-1:0][VALUE_BITS-1:0] inner_normalized1,
  input [LANES-1:0][2:0] inner_zeros1, inner_zeros2,
  input [LANES-1:0] inner_sign1, inner_sign2, inner_zero1, inner_zero2,
  input [LANES-1:0][VALUE_BITS+RECIPROCAL_BITS-1:0] inner_product
);
  localparam int BIAS = 127, FRACTION_BITS = 23;  // of float32
  localparam int USED = 8 + RECIPROCAL_BITS - 1;  // bits of r that are kept: exponent, and what counts of the fraction
  function automatic allowed(input [31:0] r);
    allowed = !r[31] && r[30:23] >= BIAS - SCALE_EXPONENT_LIMIT && r[30:23] <= BIAS + SCALE_EXPONENT_LIMIT;
  endfunction
  always @* assume (allowed(i_scale));

  wire advance = ~o__valid | o__ready;
  reg [3:1] full = 0;
  reg [31:0] r1, r2, r3;
  always @(posedge clk) begin
    if (rst) full <= 0;
    else if (advance) full <= {full[2:1], i__valid};
    if (advance) begin
      r1 <= i_scale;
      r2 <= r1;
      r3 <= r2;
    end
  end
  always @* if (started) begin
    same: assert (inner_valid == full);
    if (full[1]) first: assert (inner_scale1[30 -: USED] == r1[30 -: USED] && allowed(r1));
    if (full[2]) second: assert (inner_exponent2 == r2[30:23] && allowed(r2));
    if (full[3]) third: assert (allowed(r3));
  end

  wire [RECIPROCAL_BITS-1:0] multiplier = {1'b1, inner_scale1[FRACTION_BITS-1 -: RECIPROCAL_BITS-1]};
  generate
    for (genvar n = 0; n < LANES; n++) begin : lane
      inverse_sfpr_lane #(.VALUE_BITS(VALUE_BITS), .RECIPROCAL_BITS(RECIPROCAL_BITS)) rules (
        .q(i_values[n]), .y(o_values[n]), .exponent3(r3[30:23]),
        .inner_normalized1(inner_normalized1[n]), .inner_zeros1(inner_zeros1[n]), .inner_zeros2(inner_zeros2[n]),
        .inner_sign1(inner_sign1[n]), .inner_sign2(inner_sign2[n]), .inner_zero1(inner_zero1[n]), .inner_zero2(inner_zero2[n]),
        .inner_product(inner_product[n]), .*
      );
    end
  endgenerate
endmodule
