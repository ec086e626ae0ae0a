// Beats leave a range store with the range that came with their block; in mode actnn with that of their tile's first block.
//
// Tiles are assumed to leave as they entered, which is a property of the alignment buffer between. The tile that is followed is
// the one of any number, modulo 16; at most 9 tiles are there. Of its range one bit of each field is followed. The helper
// invariants say where its range stands.
module range_store_order #(
  parameter int BEATS,        // rows of a word
  parameter int BLOCK_SIDE,
  parameter int TILE_BLOCKS,
  parameter int SLOTS,
  parameter int ENTRY_BITS,
  parameter int RANGE_BITS,
  parameter int LOW_BIT,      // bits of a range that are followed
  parameter int MANTISSA_BIT,
  parameter int EXPONENT_BIT,
  parameter int ACTNN
) (
  input clk, rst, started,
  input i__valid, i__ready, i_ends,
  input [3:0] i_mode,
  input [2:0] i_blocks,
  input [RANGE_BITS-1:0] i_range,
  input from_alignment__valid, from_alignment_ends,
  input [3:0] from_alignment_mode,
  input [2:0] from_alignment_blocks,
  input o__valid, o__ready,
  input [BEATS-1:0][RANGE_BITS-1:0] o_ranges,
  input [$clog2(SLOTS+1)-1:0] inner_used, inner_complete,
  input [$clog2(SLOTS)-1:0] inner_write_slot, inner_read_slot,
  input [$clog2(TILE_BLOCKS)-1:0] inner_block,
  input [SLOTS*ENTRY_BITS-1:0] inner_ring,
  input inner_present,                              // the ranges of the tile that leaves stand in registers
  input [TILE_BLOCKS*RANGE_BITS-1:0] inner_ranges,
  input [$clog2(BLOCK_SIDE*TILE_BLOCKS/BEATS)-1:0] inner_number
);
  wire enters;
  wire [$clog2(TILE_BLOCKS)-1:0] entered;
  wire [2:0] width;
  wire [SLOTS:0][$clog2(SLOTS)-1:0] slots;
  wire [SLOTS:0][$clog2(TILE_BLOCKS)-1:0] others;
  range_ring #(.SLOTS(SLOTS), .TILE_BLOCKS(TILE_BLOCKS), .ENTRY_BITS(ENTRY_BITS), .RANGE_BITS(RANGE_BITS)) ring (.*);

  (* anyconst *) wire [3:0] followed;
  (* anyconst *) wire [1:0] block;
  (* anyconst *) wire [3:0] mode;
  wire [1:0] source = mode == ACTNN ? 0 : block;  // the block whose range is due
  function automatic [2:0] seen(input [RANGE_BITS-1:0] range);
    seen = {range[EXPONENT_BIT], range[MANTISSA_BIT], range[LOW_BIT]};
  endfunction

  // Tiles that enter and leave
  reg [3:0] tiles_in, tiles_out;
  reg [2:0] followed_width;
  reg [2:0] held;  // what is followed of the range
  wire tile_enters = enters & entered + 1 == i_blocks;
  wire enters_followed = tiles_in == followed;
  always @* if (i__valid & enters_followed) assume (i_mode == mode && block < i_blocks);
  reg [5:0] beat;  // of the tile that leaves
  wire [2:0] out_width = from_alignment_blocks;
  wire leaves = o__valid & o__ready;
  wire tile_leaves = beat + BEATS == BLOCK_SIDE * out_width;
  always @(posedge clk) begin
    tiles_in <= rst ? 0 : tiles_in + tile_enters;
    tiles_out <= rst ? 0 : tiles_out + (leaves & tile_leaves);
    beat <= rst ? 0 : ~leaves ? beat : tile_leaves ? 0 : beat + BEATS;
    if (enters & enters_followed) begin
      followed_width <= i_blocks;
      if (entered == source) held <= seen(i_range);
    end
  end
  always @* if (from_alignment__valid) begin
    assume (tiles_out != tiles_in && out_width >= 1 && out_width <= TILE_BLOCKS && from_alignment_ends == tile_leaves);
    if (tiles_out == followed) assume (out_width == followed_width && from_alignment_mode == mode);
  end

  // Every row that leaves has the range of its block
  wire [BEATS-1:0] right;
  generate
    for (genvar n = 0; n < BEATS; n++) begin : row
      wire [5:0] place = beat + n;
      wire [1:0] its_block = out_width == 1 ? 0 : out_width == 2 ? place[0] : out_width == 3 ? place % 3 : place;
      assign right[n] = its_block != block || seen(o_ranges[n]) == held;
    end
  endgenerate
  always @* if (started & ~rst & o__valid & tiles_out == followed) in_order: assert (&right);

  // Place of the followed tile's range
  wire [3:0] there = tiles_in - tiles_out, index = followed - tiles_out - inner_present;
  wire waits = index < inner_complete, leaving = inner_present & followed == tiles_out;
  logic [$clog2(SLOTS)-1:0] start;
  logic [1:0] start_others;
  always @* begin
    start = slots[SLOTS];
    start_others = followed_width - 1;
    for (int n = 0; n < SLOTS; n++)
      if (waits & index == n) begin
        start = slots[n];
        start_others = others[n];
      end
  end
  wire [SLOTS-1:0][2:0] in_ring;
  wire [TILE_BLOCKS-1:0][2:0] in_registers;
  generate
    for (genvar n = 0; n < SLOTS; n++) begin : in_ring_of
      assign in_ring[n] = seen(inner_ring[ENTRY_BITS*n +: RANGE_BITS]);
    end
    for (genvar n = 0; n < TILE_BLOCKS; n++) begin : in_registers_of
      assign in_registers[n] = seen(inner_ranges[RANGE_BITS*n +: RANGE_BITS]);
    end
  endgenerate
  wire [$clog2(SLOTS)-1:0] slot = start + source;
  wire [2:0] kept = in_ring[slot], leaving_range = in_registers[source];
  wire [$clog2(BLOCK_SIDE*TILE_BLOCKS/BEATS)-1:0] number = beat / BEATS;
  always @* if (started) begin
    tiles: assert (there == inner_complete + inner_present);
    counted: assert (beat % BEATS == 0 && inner_number == number && (inner_present || beat == 0));
    if (enters_followed & entered != 0) entering: assert (followed_width == width && block < width);
    if (enters_followed & entered > source) entered_range: assert (kept == held);
    if (waits) waiting: assert (kept == held && start_others == followed_width - 1);
    if (waits | leaving) widths: assert (followed_width >= 1 && followed_width <= TILE_BLOCKS && block < followed_width);
    if (leaving) out: assert (leaving_range == held && beat < BLOCK_SIDE * followed_width);
  end
endmodule
