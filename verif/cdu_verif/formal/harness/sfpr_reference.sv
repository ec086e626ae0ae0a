// SFPR by its definition: the exact product as one wide integer, rounded once. Combinational.
//
// |x * k| is product * 2**exponents units of 2**-UNIT, an integer without any rounding: whole units above bit UNIT, the rest
// below. x is a value in a format with a sign, an exponent and a fraction; k is a number of format float32.
module sfpr_reference #(
  parameter int EXPONENT_BITS,        // of the format of the values
  parameter int FRACTION_BITS,
  parameter int SCALE_BITS,           // significant bits of k, the leading one included
  parameter int VALUE_MIN,            // range of the result
  parameter int VALUE_MAX,
  parameter int VALUE_BITS
) (
  input [EXPONENT_BITS+FRACTION_BITS:0] x,
  input [31:0] k,
  output logic signed [VALUE_BITS-1:0] q
);
  localparam int WIDE_EXPONENT_BITS = 8, WIDE_FRACTION_BITS = 23, SCALE_FRACTION = SCALE_BITS - 1;
  localparam int BIAS = (1 << (EXPONENT_BITS - 1)) - 1, WIDE_BIAS = (1 << (WIDE_EXPONENT_BITS - 1)) - 1;
  localparam int UNIT = BIAS + FRACTION_BITS + WIDE_BIAS + SCALE_FRACTION;
  localparam int PRODUCT_BITS = FRACTION_BITS + 1 + SCALE_BITS;
  localparam int SIZE = PRODUCT_BITS + (1 << EXPONENT_BITS) + (1 << WIDE_EXPONENT_BITS);

  localparam int NEGATIVE_MAX = -VALUE_MIN;  // greatest magnitude of a negative result

  wire sign = x[EXPONENT_BITS+FRACTION_BITS];
  wire [EXPONENT_BITS-1:0] exponent = x[FRACTION_BITS +: EXPONENT_BITS];
  wire [FRACTION_BITS-1:0] fraction = x[0 +: FRACTION_BITS];
  wire [FRACTION_BITS:0] significand = {exponent != 0, fraction};
  wire [SCALE_FRACTION:0] multiplier = {1'b1, k[WIDE_FRACTION_BITS-SCALE_FRACTION +: SCALE_FRACTION]};
  wire [WIDE_EXPONENT_BITS-1:0] scale_exponent = k[WIDE_FRACTION_BITS +: WIDE_EXPONENT_BITS];

  wire [PRODUCT_BITS-1:0] product = significand * multiplier;
  wire [WIDE_EXPONENT_BITS+1:0] exponents = (exponent == 0 ? 1 : exponent) + scale_exponent;
  wire [SIZE-1:0] exact = {{(SIZE-PRODUCT_BITS){1'b0}}, product} << exponents;
  wire [SIZE-UNIT-1:0] whole = exact[SIZE-1:UNIT];
  wire [UNIT-1:0] rest = exact[UNIT-1:0];
  wire [UNIT-1:0] half = {1'b1, {(UNIT-1){1'b0}}};
  wire [SIZE-UNIT:0] magnitude = whole + (rest > half || (rest == half && whole[0]));  // ties to even
  wire infinite = &exponent;
  wire [VALUE_BITS-1:0] low = magnitude[VALUE_BITS-1:0];
  always @*
    if (&exponent && fraction != 0) q = 0;  // not a number
    else if (sign) q = infinite || magnitude >= NEGATIVE_MAX ? VALUE_MIN : -low;
    else q = infinite || magnitude >= VALUE_MAX ? VALUE_MAX : low;
endmodule
