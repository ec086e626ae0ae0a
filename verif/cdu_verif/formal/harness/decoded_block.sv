// The rows of a block that leave the decoder of BRC are those of its bytes: a row for each byte, with a value for each bit.
//
// The first or the second block is followed. A block is one slice, with as many bytes as it has rows.
module decoded_block #(
  parameter int SLICE_BYTES,
  parameter int COUNT_BITS
) (
  input clk, rst,
  input i_valid, i_ready, i_ends,
  input [8*SLICE_BYTES-1:0] i_data,
  input [COUNT_BITS-1:0] i_count,
  input [3:0] i_rows,
  input o_valid, o_ready, o_ends,
  input [63:0] o_values
);
  (* anyconst *) reg chosen;
  reg [1:0] entered = 0, left = 0;
  reg [63:0] bytes = 0;
  reg [3:0] rows = 0, row = 0;
  always @* if (i_valid) assume (i_count == i_rows);
  always @(posedge clk) if (!rst) begin
    if (i_valid & i_ready & i_ends & ~&entered) entered <= entered + 1;
    if (o_valid & o_ready & o_ends & ~&left) left <= left + 1;
    if (i_valid & i_ready & entered == chosen) begin
      bytes <= i_data;
      rows <= i_rows;
    end
    if (o_valid & o_ready & left == chosen) row <= row + 1;
  end
  wire [7:0] bits = bytes >> 8 * row;
  wire [63:0] values;
  genvar lane;
  generate
    for (lane = 0; lane < 8; lane = lane + 1) assign values[8*lane +: 8] = bits[lane];
  endgenerate
  always @* if (!rst & o_valid & left == chosen) begin
    whole: assert (entered > chosen);
    end_of_block: assert (o_ends == (row + 1 == rows));
    content: assert (o_values == values);
  end
endmodule
