// Codes of a block that leave the decoder are those side by side in its bytes: code n of the block at bit n * bits.
//
// One code of the first or the second block is followed. Blocks have no head.
module decoded_codes #(
  parameter int SLICE_BYTES,
  parameter int COUNT_BITS,
  parameter bit [15:0] MODES  // whose values are codes
) (
  input clk, rst,
  input i_valid, i_ready, i_ends, i_heads, i_statistics,
  input [3:0] i_mode,
  input [1:0] i_bits_log2,
  input [8*SLICE_BYTES-1:0] i_data,
  input [COUNT_BITS-1:0] i_count,
  input [3:0] i_rows,
  input o_valid, o_ready, o_ends,
  input [63:0] o_values
);
  (* anyconst *) reg chosen;
  (* anyconst *) reg [2:0] row, lane;
  reg [1:0] entered = 0, left = 0;
  reg [3:0] rows = 0, number = 0;
  reg [7:0] code = 0, slices = 0;
  wire [3:0] bits = 1 << i_bits_log2;
  wire [8:0] place = {row, lane} << i_bits_log2;
  wire [8:0] offset = place - 8 * SLICE_BYTES * slices;
  wire [7:0] found = i_data >> offset;
  reg [7:0] begun = 0;
  always @(posedge clk) if (rst) begun <= 0; else if (i_valid & i_ready) begun <= i_ends ? 0 : begun + 1;
  always @* if (i_valid) begin
    assume (MODES[i_mode] & !i_heads & !i_statistics);
    assume (i_ends == (SLICE_BYTES * (begun + 1) >= i_rows * bits));
    if (i_ends) assume (SLICE_BYTES * begun + i_count == i_rows * bits);
  end
  always @(posedge clk) if (!rst) begin
    if (i_valid & i_ready & i_ends & ~&entered) entered <= entered + 1;
    if (o_valid & o_ready & o_ends & ~&left) left <= left + 1;
    if (i_valid & i_ready & entered == chosen) begin
      if (place >= 8 * SLICE_BYTES * slices & place < 8 * SLICE_BYTES * (slices + 1)) code <= found & ((1 << bits) - 1);
      slices <= slices + 1;
      rows <= i_rows;
    end
    if (o_valid & o_ready & left == chosen) number <= number + 1;
  end
  always @* if (!rst & o_valid & left == chosen) begin
    whole: assert (entered > chosen);
    end_of_block: assert (o_ends == (number + 1 == rows));
    if (number == row) content: assert (o_values[8*lane +: 8] == code);
  end
endmodule
