// The scale of a block with this greatest magnitude, a float32 pattern without its sign.
module mx_scale_reference #(
  parameter int FRACTION_BITS,  // of an element
  parameter int EMAX,
  parameter int FRACTION        // of the greatest element
) (
  input [30:0] most,
  input rceil,
  output [7:0] scale
);
  wire [7:0] exponent = most[30:23];
  wire above = rceil & exponent != 0 & most[22:0] > 23'(FRACTION << (23 - FRACTION_BITS));
  wire signed [9:0] wanted = $signed({2'b0, exponent}) + $signed({9'b0, above}) - 10'(EMAX);
  assign scale = most > 31'h7f800000 ? 255 : rceil & &exponent | wanted > 254 ? 254 : wanted < 0 ? 0 : wanted[7:0];
endmodule
