// The inverse of the shift quantiser by its definition: c = sat(q * 2**shift), and away from 0 by a part of the step where q is
// not 0. Combinational.
module inverse_shift_quantizer_reference #(
  parameter int X_BITS,
  parameter int SHIFT_BITS,
  parameter int POINT_BITS,
  parameter int Y_BITS,
  parameter int Y_MIN,
  parameter int Y_MAX
) (
  input signed [X_BITS-1:0] x,
  input [SHIFT_BITS-1:0] shift,
  input [POINT_BITS-1:0] point,  // in parts of a step, of which there are 2**POINT_BITS
  output signed [Y_BITS-1:0] y
);
  wire signed [31:0] offset = point * (1 << shift) / (1 << POINT_BITS);
  wire signed [31:0] exact = x * (1 << shift) + (x > 0 ? offset : x < 0 ? -offset : 0);
  assign y = exact < Y_MIN ? Y_MIN : exact > Y_MAX ? Y_MAX : exact;
endmodule
