// Meaning of a range store's registers: the ring holds the complete tiles and the blocks of the tile that enters.
//
// Tiles enter block by block. An entry of the ring tells how many other blocks its tile has.
module range_ring #(
  parameter int SLOTS,        // blocks that the ring has room for, a power of two
  parameter int TILE_BLOCKS,
  parameter int ENTRY_BITS,
  parameter int RANGE_BITS    // of an entry, below the number of the other blocks of its tile
) (
  input clk, rst, started,
  input i__valid, i__ready, i_ends,
  input [2:0] i_blocks,
  input [$clog2(SLOTS+1)-1:0] inner_used, inner_complete,
  input [$clog2(SLOTS)-1:0] inner_write_slot, inner_read_slot,
  input [$clog2(TILE_BLOCKS)-1:0] inner_block,
  input [SLOTS*ENTRY_BITS-1:0] inner_ring,
  output enters,                                      // the last beat of a block
  output reg [$clog2(TILE_BLOCKS)-1:0] entered,       // blocks of the tile that enters
  output reg [2:0] width,                             // of that tile
  // Tiles from the oldest one on; the last entry is that of the tile that enters
  output [SLOTS:0][$clog2(SLOTS)-1:0] slots,          // where it begins
  output [SLOTS:0][$clog2(TILE_BLOCKS)-1:0] others    // blocks besides its first one
);
  localparam int SLOT_BITS = $clog2(SLOTS), OTHERS_BITS = $clog2(TILE_BLOCKS);

  assign enters = i__valid & i__ready & i_ends;
  always @(posedge clk) begin
    entered <= rst ? 0 : ~enters ? entered : entered + 1 == i_blocks ? 0 : entered + 1;
    if (i__valid & i__ready) width <= i_blocks;
  end
  always @* if (i__valid)
    assume (i_blocks >= 1 && i_blocks <= TILE_BLOCKS && (entered == 0 || i_blocks == width));

  wire [SLOTS-1:0][OTHERS_BITS-1:0] ring_others;
  wire [SLOTS:0][5:0] sums;  // blocks of the tiles before
  assign sums[0] = 0;
  generate
    for (genvar slot = 0; slot < SLOTS; slot++) begin : entry
      assign ring_others[slot] = inner_ring[ENTRY_BITS*slot + RANGE_BITS +: OTHERS_BITS];
    end
    for (genvar n = 0; n <= SLOTS; n++) begin : tile
      assign slots[n] = inner_read_slot + sums[n];
      assign others[n] = ring_others[slots[n]];
      if (n < SLOTS) begin : complete
        assign sums[n+1] = sums[n] + (inner_complete > n ? others[n] + 1 : 0);
      end
    end
  endgenerate

  wire [SLOT_BITS-1:0] free = inner_read_slot + inner_used;
  always @* if (started) begin
    in_bounds: assert (inner_used <= SLOTS && inner_complete <= SLOTS);
    amount: assert (inner_used == sums[SLOTS] + entered && entered == inner_block);
    place: assert (inner_write_slot == free);
    if (entered != 0) begun: assert (entered < width && width <= TILE_BLOCKS && others[SLOTS] == width - 1);
  end
endmodule
