// Codes of a block that leave the encoder are side by side, without gaps: code n of the block at bit n * bits of its bytes.
//
// One code of the first or the second block is followed. Blocks have no head and are not statistics.
module encoded_codes #(
  parameter int SLICE_BYTES,
  parameter int COUNT_BITS,
  parameter bit [15:0] MODES  // whose values are codes
) (
  input clk, rst,
  input i_valid, i_ready, i_ends, i_heads, i_statistics,
  input [3:0] i_mode,
  input [1:0] i_bits_log2,
  input [63:0] i_values,
  input o_valid, o_ready, o_ends,
  input [8*SLICE_BYTES-1:0] o_data,
  input [COUNT_BITS-1:0] o_count,
  input [3:0] o_rows
);
  (* anyconst *) reg chosen;
  (* anyconst *) reg [2:0] row, lane;
  reg [1:0] entered = 0, left = 0, bits_log2 = 0;
  reg [3:0] rows = 0;
  reg [7:0] code = 0, slices = 0;
  reg seen = 0;
  always @* if (i_valid) assume (MODES[i_mode] & !i_heads & !i_statistics);
  always @(posedge clk) if (!rst) begin
    if (i_valid & i_ready & i_ends & ~&entered) entered <= entered + 1;
    if (o_valid & o_ready & o_ends & ~&left) left <= left + 1;
    if (i_valid & i_ready & entered == chosen) begin
      if (rows == row) begin
        code <= i_values[8*lane +: 8];
        seen <= 1;
      end
      bits_log2 <= i_bits_log2;
      rows <= rows + 1;
    end
    if (o_valid & o_ready & left == chosen) slices <= slices + 1;
  end
  wire [3:0] bits = 1 << bits_log2;
  wire [8:0] place = {row, lane} << bits_log2;
  wire [8:0] offset = place - 8 * SLICE_BYTES * slices;
  wire [7:0] found = o_data >> offset;
  always @* if (!rst & o_valid & left == chosen) begin
    whole: assert (entered > chosen);
    length: assert (o_ends ? SLICE_BYTES * slices + o_count == rows * bits : SLICE_BYTES * (slices + 1) < rows * bits);
    block: assert (o_rows == rows);
    zeros: assert (o_data >> 8 * o_count == 0);
    if (seen & place >= 8 * SLICE_BYTES * slices & place < 8 * SLICE_BYTES * (slices + 1))
      content: assert (((found ^ code) & ((1 << bits) - 1)) == 0);
  end
endmodule
