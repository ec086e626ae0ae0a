// Every lane multiplies the quantised coefficient of each transfer by the divisor of its place in the block.
//
// Columns are counted from reset; divisors are free in every cycle.
module inverse_div_quantizer_rules #(
  parameter int LANES,
  parameter int COLUMNS,  // of a block, a power of two
  parameter int C_BITS,
  parameter int DIVISOR_BITS
) (
  input clk, rst, started,
  input i__valid, i__ready,
  input [LANES-1:0][C_BITS-1:0] i__payload,
  input [LANES-1:0][C_BITS-1:0] o__payload,
  input [COLUMNS*LANES*DIVISOR_BITS-1:0] divisors,  // by column and lane
  // of the device, by lane
  input [$clog2(COLUMNS)-1:0] inner_column,
  input [1:0] inner_valid,
  input [LANES-1:0][DIVISOR_BITS-1:0] divisor,
  input [LANES-1:0][C_BITS+DIVISOR_BITS-1:0] product
);
  wire [LANES*DIVISOR_BITS-1:0] ds;
  divisors_of_column #(.LANES(LANES), .COLUMNS(COLUMNS), .DIVISOR_BITS(DIVISOR_BITS)) selected (
    .enters(i__valid & i__ready), .found(ds), .*
  );

  generate
    for (genvar n = 0; n < LANES; n++) begin : lane
      inverse_div_quantizer_lane #(.C_BITS(C_BITS), .DIVISOR_BITS(DIVISOR_BITS)) rules (
        .advance(i__ready), .q(i__payload[n]), .d(ds[DIVISOR_BITS*n +: DIVISOR_BITS]), .valid(inner_valid),
        .divisor(divisor[n]), .product(product[n]), .c(o__payload[n]), .*
      );
    end
  endgenerate
endmodule
