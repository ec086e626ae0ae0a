// The shift quantiser by its definition: q = sat(round(c / 2**shift)), by division of the magnitude. Combinational.
module shift_quantizer_reference #(
  parameter int X_BITS,
  parameter int SHIFT_BITS,
  parameter int Y_BITS,
  parameter int Y_MIN,
  parameter int Y_MAX,
  parameter bit ROUND  // half away from zero, else towards zero
) (
  input signed [X_BITS-1:0] x,
  input [SHIFT_BITS-1:0] shift,
  output signed [Y_BITS-1:0] y
);
  localparam int NEGATIVE_MAX = -Y_MIN;  // greatest magnitude of a negative result

  wire [31:0] step = 1 << shift;
  wire [31:0] magnitude = x < 0 ? -x : x;
  wire [31:0] rounded = (magnitude + (ROUND ? step / 2 : 0)) >> shift;
  assign y = x < 0 ? (rounded > NEGATIVE_MAX ? Y_MIN : -rounded) : (rounded > Y_MAX ? Y_MAX : rounded);
endmodule
