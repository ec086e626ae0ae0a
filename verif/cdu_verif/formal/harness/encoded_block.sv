// The bytes of a block that leave the encoder of BRC are those of its rows: a byte for each row, with a bit for each value.
//
// The first or the second block is followed.
module encoded_block #(
  parameter int SLICE_BYTES,
  parameter int COUNT_BITS
) (
  input clk, rst,
  input i_valid, i_ready, i_ends,
  input [63:0] i_values,
  input o_valid, o_ready, o_ends,
  input [8*SLICE_BYTES-1:0] o_data,
  input [COUNT_BITS-1:0] o_count,
  input [3:0] o_rows
);
  (* anyconst *) reg chosen;
  reg [1:0] entered = 0, left = 0;
  reg [63:0] bytes = 0;
  reg [3:0] rows = 0;
  wire [7:0] row;
  genvar lane;
  generate
    for (lane = 0; lane < 8; lane = lane + 1) assign row[lane] = i_values[8*lane];
  endgenerate
  always @(posedge clk) if (!rst) begin
    if (i_valid & i_ready & i_ends & ~&entered) entered <= entered + 1;
    if (o_valid & o_ready & o_ends & ~&left) left <= left + 1;
    if (i_valid & i_ready & entered == chosen) begin
      bytes <= bytes | 64'(row) << 8 * rows;
      rows <= rows + 1;
    end
  end
  always @* if (!rst & o_valid & left == chosen) begin
    whole: assert (entered > chosen & o_ends);
    length: assert (o_count == rows && o_rows == rows);
    content: assert (o_data == bytes);
  end
endmodule
