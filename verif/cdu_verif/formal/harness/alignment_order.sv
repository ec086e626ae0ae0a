// Row `row` of block `block` of any tile leaves at its place in the other order of the tile.
//
// A tile stands row by row, the blocks of a row side by side, or block by block.
module alignment_order #(
  parameter int BEATS,        // rows of a word
  parameter int ROW_BITS,
  parameter int BLOCK_SIDE,
  parameter int TILE_BLOCKS,
  parameter bit TO_BLOCKS,    // tiles enter row by row and leave block by block, else the other way
  parameter int TILE_WIDTH    // blocks of every tile, 0 for any number
) (
  input clk, rst, started,
  input i__valid, i__ready, o__valid, o__ready,
  input [BEATS*ROW_BITS-1:0] i_values, o_values,
  input [$clog2(BEATS+1)-1:0] i_count, o_count,
  input i_ends,
  input [2:0] i_blocks
);
  localparam int SIZE = 8;

  // The tile that enters
  wire enters = i__valid & i__ready;
  reg [6:0] beat;
  reg [2:0] width;
  wire block_ends = TO_BLOCKS ? beat + BEATS == BLOCK_SIDE * i_blocks : (beat + BEATS) % BLOCK_SIDE == 0;
  wire tile_ends = i_ends && (TO_BLOCKS || beat + i_count > BLOCK_SIDE * (i_blocks - 1));
  always @(posedge clk) begin
    beat <= rst ? 0 : ~enters ? beat : tile_ends ? 0 : beat + BEATS;
    if (enters) width <= i_blocks;
  end
  always @* if (i__valid) begin
    assume (i_blocks >= 1 && i_blocks <= TILE_BLOCKS);
    assume (beat == 0 || i_blocks == width);
    assume (TILE_WIDTH == 0 || i_blocks == TILE_WIDTH);
    assume (i_count >= 1 && i_count <= BEATS && (i_ends || i_count == BEATS));
    if (i_blocks == 1) assume (i_ends || beat + BEATS < BLOCK_SIDE);
    else assume (i_count == BEATS && i_ends == block_ends);
  end

  // The row that is followed, and its place in both orders
  (* anyconst *) wire [2:0] row;
  (* anyconst *) wire [2:0] block;
  wire [9:0] row_wise = row * i_blocks + block, block_wise = block * BLOCK_SIDE + row;
  wire [9:0] here = TO_BLOCKS ? row_wise : block_wise, there = TO_BLOCKS ? block_wise : row_wise;
  wire [BEATS-1:0] rows_in, rows_out;
  first_bits #(.COUNT(BEATS), .SIZE(ROW_BITS)) bits_in (.items(i_values), .bits(rows_in));
  first_bits #(.COUNT(BEATS), .SIZE(ROW_BITS)) bits_out (.items(o_values), .bits(rows_out));
  wire [SIZE-1:0] entering = enters ? i_count : 0, leaving = o__valid & o__ready ? o_count : 0;

  wire [SIZE-1:0] held, ahead;
  wire [SIZE-1:0] ahead_of_new = held - beat + there;
  wire item, active;
  follow #(.ITEM(1), .SIZE(SIZE), .CAPACITY(2 * BLOCK_SIDE * TILE_BLOCKS + BEATS)) row_of_tile (
    .candidate(enters & block < i_blocks & here >= beat & here < beat + i_count),
    .new_item(rows_in[here - beat]), .chosen(), .followed(), .ahead_later(), .item_later(), .*
  );
  always @* if (started & ~rst & o__valid)
    if (active & ahead < o_count) in_order: assert (rows_out[ahead] == item);
endmodule
