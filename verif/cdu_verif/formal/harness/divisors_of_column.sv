// The divisors of the column that enters. Columns are counted from reset, as the device counts them.
module divisors_of_column #(
  parameter int LANES,
  parameter int COLUMNS,  // of a block, a power of two
  parameter int DIVISOR_BITS
) (
  input clk, rst, started, enters,
  input [COLUMNS*LANES*DIVISOR_BITS-1:0] divisors,  // by column and lane
  input [$clog2(COLUMNS)-1:0] inner_column,         // of the device
  output [LANES*DIVISOR_BITS-1:0] found
);
  reg [$clog2(COLUMNS)-1:0] column;
  always @(posedge clk) column <= rst ? 0 : column + enters;
  always @* if (started & ~rst) columns: assert (column == inner_column);
  assign found = divisors >> (LANES * DIVISOR_BITS * column);
endmodule
