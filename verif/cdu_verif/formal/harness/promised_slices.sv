// Slices of packed blocks as a decoder is promised them, with any bytes in them.
//
// All slices of a block have one tag and number of rows, which is 8 in the modes of WHOLE and 1 to 8 in others, and all but the
// last are full.
module promised_slices #(
  parameter bit [15:0] WHOLE,
  parameter int SLICE_BYTES,
  parameter int SLICES,  // at most, of a block
  parameter int COUNT_BITS,
  parameter int TAG_BITS
) (
  input clk, rst,
  input i_valid, i_ready, i_ends,
  input [COUNT_BITS-1:0] i_count,
  input [3:0] i_rows,
  input [3:0] i_mode,
  input [TAG_BITS-1:0] i_tag
);
  reg [7:0] number = 0;
  reg [TAG_BITS-1:0] tag;
  reg [3:0] rows;
  always @(posedge clk)
    if (rst) number <= 0;
    else if (i_valid & i_ready) begin
      number <= i_ends ? 0 : number + 1;
      tag <= i_tag;
      rows <= i_rows;
    end
  always @* if (i_valid) begin
    assume (i_ends ? i_count != 0 && i_count <= SLICE_BYTES : i_count == SLICE_BYTES);
    assume (number < SLICES - 1 || i_ends);
    assume (WHOLE[i_mode] ? i_rows == 8 : i_rows != 0 && i_rows <= 8);
    assume (number == 0 || (i_tag == tag && i_rows == rows));
  end
endmodule
