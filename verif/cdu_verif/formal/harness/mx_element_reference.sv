// The code of a float32 number in a block of this scale, which is not that of NaN: to nearest, ties to even, limited.
//
// The number is an integer of steps of the smallest elements and a fraction. In an octave above that of the smallest normal
// elements a step is so many of these, and codes go on from those of the octave below.
module mx_element_reference #(
  parameter int FRACTION_BITS,
  parameter int OCTAVES,   // above that of the smallest normal elements
  parameter int BIAS,      // minus the exponent of these
  parameter int GREATEST,  // code of the greatest element
  parameter bit INTEGER,   // codes are in two's complement, else there is a sign in front
  parameter int BITS
) (
  input [31:0] value,
  input [7:0] scale,
  output [BITS-1:0] code
);
  // Bits behind the point: all of a number that is half a step or more
  localparam int POINT = 24;
  localparam int WIDTH = POINT + FRACTION_BITS + OCTAVES + 3;
  // Distance in bits of the significand's lowest bit from the last one.
  wire signed [11:0] place =
    $signed({4'b0, value[30:23]}) - $signed({4'b0, scale}) + 12'(BIAS + FRACTION_BITS + POINT - 23);
  wire [WIDTH-1:0] steps = place < 0 | value[30:23] == 0 ? 0 : WIDTH'({1'b1, value[22:0]}) << place;

  logic [WIDTH-1:0] rounded;
  always @* begin
    rounded = 0;
    for (int octave = 0; octave <= OCTAVES + 1; octave++)
      if (octave == 0 | |(steps >> (POINT + FRACTION_BITS + octave)))
        rounded = (WIDTH'(octave) << FRACTION_BITS)
          + ((steps + (WIDTH'(1) << (POINT + octave - 1)) - 1 + WIDTH'(steps[POINT + octave])) >> (POINT + octave));
    if (rounded > WIDTH'(GREATEST) | &value[30:23]) rounded = WIDTH'(GREATEST);
  end
  wire [BITS-1:0] magnitude = rounded[BITS-1:0];
  assign code = INTEGER ? (value[31] ? -magnitude : magnitude) : {value[31], magnitude[BITS-2:0]};
endmodule
