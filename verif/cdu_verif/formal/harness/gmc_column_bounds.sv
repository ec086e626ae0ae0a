// Bounds of every column, whatever its bits: its greatest length, and the masks of its classes.
module gmc_column_bounds #(
  parameter bit KNOWN,  // assumed, being proven where it is not
  parameter int PREFIX_BITS,
  parameter int COLUMN_BITS
) (
  input final_column,
  input [2:0] a, b, next_a, next_b,
  input [3:0] mask_a, mask_b,
  input [4:0] prefix,
  input [5:0] fields_a, fields_b,
  input [6:0] length
);
  wire fitting = prefix <= PREFIX_BITS && fields_a <= 32 && fields_b <= 32 && length <= COLUMN_BITS;
  wire whole = length == prefix + fields_a + fields_b;
  wire masked = (mask_a == 0) == (a == 0) && (mask_b == 0) == (b == 0) && (a != 7 || mask_a == 15) && (b != 7 || mask_b == 15);
  wire last = ~final_column || (next_a == 0 && next_b == 0);
  always @* if (KNOWN) assume (fitting & whole & masked & last);
  else bounds: assert (fitting & whole & masked & last);
endmodule
