// A lane's quantised coefficient is the whole part of (|c| + d/2) / d, found by the reciprocal of d, with the sign of c.
//
// The reciprocal of a divisor, moved until its highest bit is set, is 2**RECIPROCAL_SHIFT / divisor, rounded up. That the whole
// part of the product with it is that of the quotient, for every dividend and divisor, is a matter of numbers alone: a test has
// them all.
module div_quantizer_lane #(
  parameter bit ROUND,            // half away from zero, else towards zero
  parameter int C_BITS,
  parameter int DIVISOR_BITS,
  parameter int RECIPROCAL_BITS,
  parameter int RECIPROCAL_SHIFT
) (
  input clk, rst, started, advance,
  input [C_BITS-1:0] c,
  input [DIVISOR_BITS-1:0] d,
  // of the device, by stage
  input [2:0] valid,
  input negative1, negative2,
  input [2:0] places1, places2,
  input [C_BITS-1:0] dividend,
  input [RECIPROCAL_BITS-1:0] reciprocal,
  input [C_BITS+RECIPROCAL_BITS-1:0] product,
  input [C_BITS-1:0] q
);
  wire negative = c[C_BITS-1];
  wire [C_BITS-1:0] amount = (negative ? -c : c) + (ROUND ? d >> 1 : 0);
  reg [2:0] places;
  integer place;
  always @* begin
    places = 0;
    for (place = 0; place < DIVISOR_BITS; place = place + 1) if (d[place]) places = DIVISOR_BITS - 1 - place;
  end
  wire [DIVISOR_BITS-1:0] step = d << places;

  // Operands of each stage
  wire [3:0] negatives;
  wire [3:0][2:0] moved;
  wire [3:0][C_BITS-1:0] amounts;
  wire [3:0][DIVISOR_BITS-1:0] steps;
  pipeline #(.WIDTH(1), .STAGES(3)) signs (.value(negative), .at(negatives), .*);
  pipeline #(.WIDTH(3), .STAGES(3)) shifts (.value(places), .at(moved), .*);
  pipeline #(.WIDTH(C_BITS), .STAGES(3)) dividends (.value(amount), .at(amounts), .*);
  pipeline #(.WIDTH(DIVISOR_BITS), .STAGES(3)) divisors (.value(step), .at(steps), .*);
  // Registers of the device in the stage before
  reg [C_BITS-1:0] dividend_before;
  reg [C_BITS+RECIPROCAL_BITS-1:0] multiplied, product_before;
  always @(posedge clk) if (advance) begin
    dividend_before <= dividend;
    multiplied <= dividend * reciprocal;
    product_before <= product;
  end

  wire [RECIPROCAL_SHIFT:0] whole_step = reciprocal * steps[1];
  wire [C_BITS-1:0] whole = product_before >> (RECIPROCAL_SHIFT - moved[3]);
  wire [C_BITS-1:0] expected = negatives[3] ? -whole : whole;
  always @* if (started & ~rst) begin
    if (valid[0]) begin
      sign1: assert (negative1 == negatives[1] && places1 == moved[1]);
      dividend1: assert (dividend == amounts[1]);
      reciprocal1: assert (whole_step - (1 << RECIPROCAL_SHIFT) < steps[1]);
    end
    if (valid[1]) begin
      sign2: assert (negative2 == negatives[2] && places2 == moved[2]);
      dividend2: assert (dividend_before == amounts[2]);
      product2: assert (product == multiplied);
    end
    if (valid[2]) quotient3: assert (q == expected);
  end
endmodule
