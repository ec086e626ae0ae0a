// Every lane divides the coefficient of each transfer by the divisor of its place in the block.
//
// Columns are counted from reset; divisors are free in every cycle, but none is 0.
module div_quantizer_rules #(
  parameter int LANES,
  parameter int COLUMNS,          // of a block, a power of two
  parameter bit ROUND,            // half away from zero, else towards zero
  parameter int C_BITS,
  parameter int DIVISOR_BITS,
  parameter int RECIPROCAL_BITS,
  parameter int RECIPROCAL_SHIFT
) (
  input clk, rst, started,
  input i__valid, i__ready,
  input [LANES-1:0][C_BITS-1:0] i__payload,
  input [LANES-1:0][C_BITS-1:0] o__payload,
  input [COLUMNS*LANES*DIVISOR_BITS-1:0] divisors,  // by column and lane
  // of the device, by lane
  input [$clog2(COLUMNS)-1:0] inner_column,
  input [2:0] inner_valid,
  input [LANES-1:0] negative1, negative2,
  input [LANES-1:0][2:0] places1, places2,
  input [LANES-1:0][C_BITS-1:0] dividend,
  input [LANES-1:0][RECIPROCAL_BITS-1:0] reciprocal,
  input [LANES-1:0][C_BITS+RECIPROCAL_BITS-1:0] product
);
  wire [LANES*DIVISOR_BITS-1:0] ds;
  divisors_of_column #(.LANES(LANES), .COLUMNS(COLUMNS), .DIVISOR_BITS(DIVISOR_BITS)) selected (
    .enters(i__valid & i__ready), .found(ds), .*
  );

  generate
    for (genvar n = 0; n < LANES; n++) begin : lane
      div_quantizer_lane #(
        .ROUND(ROUND), .C_BITS(C_BITS), .DIVISOR_BITS(DIVISOR_BITS), .RECIPROCAL_BITS(RECIPROCAL_BITS),
        .RECIPROCAL_SHIFT(RECIPROCAL_SHIFT)
      ) rules (
        .advance(i__ready), .c(i__payload[n]), .d(ds[DIVISOR_BITS*n +: DIVISOR_BITS]), .valid(inner_valid),
        .negative1(negative1[n]), .negative2(negative2[n]), .places1(places1[n]), .places2(places2[n]),
        .dividend(dividend[n]), .reciprocal(reciprocal[n]), .product(product[n]), .q(o__payload[n]), .*
      );
    end
  endgenerate
endmodule
