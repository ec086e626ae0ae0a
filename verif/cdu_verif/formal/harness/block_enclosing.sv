// Any value of any block lies between the least and the greatest value that are found for it.
//
// The values come in tiles, row by row. How many statistics are found before those of the followed value is known when it
// enters: in mode actnn a tile has one, in mode division each of its blocks.
module block_enclosing #(
  parameter int BEATS,        // rows of a word
  parameter int LANES,        // values of a row
  parameter int BASE_BITS,
  parameter int BLOCK_SIDE,
  parameter int TILE_BLOCKS,
  parameter int TILE_WIDTH,   // blocks of every tile, 0 for any number
  parameter int DIVISION,
  parameter int ACTNN
) (
  input clk, rst, started,
  input i__valid, i__ready,
  input [BEATS*LANES*BASE_BITS-1:0] i_values,
  input [$clog2(BEATS+1)-1:0] i_count,
  input i_ends,
  input [3:0] i_mode,
  input [2:0] i_blocks,
  input found__valid, found__ready,
  input signed [BASE_BITS-1:0] found_least, found_most
);
  // The tile that enters
  wire enters = i__valid & i__ready;
  reg [5:0] beat;
  reg [2:0] width;
  reg [3:0] tile_mode;
  wire tile_ends = beat + BEATS == BLOCK_SIDE * i_blocks;
  wire common = i_mode == ACTNN;
  always @(posedge clk) begin
    beat <= rst ? 0 : ~enters ? beat : tile_ends ? 0 : beat + BEATS;
    if (enters) begin
      width <= i_blocks;
      tile_mode <= i_mode;
    end
  end
  always @* if (i__valid) begin
    assume (i_blocks >= 1 && i_blocks <= TILE_BLOCKS && i_count == BEATS && i_ends == tile_ends);
    assume (i_mode == ACTNN || i_mode == DIVISION);
    assume (beat == 0 || (i_blocks == width && i_mode == tile_mode));
    assume (TILE_WIDTH == 0 || i_blocks == TILE_WIDTH);
  end

  // The value that is followed
  (* anyconst *) wire [2:0] row;
  (* anyconst *) wire [2:0] place;
  (* anyseq *) wire choose;
  always @* assume (row < BEATS);
  reg [5:0] due;  // statistics of the tiles that have entered, not yet taken
  wire found = found__valid & found__ready;
  reg followed = 0;
  reg [5:0] ahead;
  reg signed [BASE_BITS-1:0] value;
  wire chosen = enters & choose & ~followed;
  always @(posedge clk) begin
    due <= rst ? 0 : due + (enters & tile_ends ? (common ? 1 : i_blocks) : 0) - found;
    followed <= ~rst & (chosen | (followed & ~(found & ahead == 0)));
    if (chosen) begin
      ahead <= due + (common ? 0 : (beat + row) % i_blocks) - found;
      value <= i_values[LANES * BASE_BITS * row + BASE_BITS * place +: BASE_BITS];
    end else ahead <= ahead - found;
  end

  always @* if (started & ~rst & found__valid & followed & ahead == 0)
    encloses: assert (found_least <= value && value <= found_most);
endmodule
