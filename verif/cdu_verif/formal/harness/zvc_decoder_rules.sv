// The rows of a block leave the decoder of ZVC with the bytes behind its mask where that has bits, and zeros elsewhere.
//
// A block, and in it a value, are chosen freely and followed. The mask is in the first slice. Where it has more bits than the
// block has bytes, nothing is said of the values that are missing.
module zvc_decoder_rules #(
  parameter int SLICE_BYTES,  // at least those of the mask
  parameter int SLICES,       // at most, of a block
  parameter int MODE
) (
  input clk, rst, started,
  input i_valid, i_ready, i_ends,
  input [8*SLICE_BYTES-1:0] i_data,
  input o_valid, o_ready, o_ends,
  input [63:0] o_values,
  // of the device: the slices that are collected, the block that is read, and where
  input full,
  input [2:0] number,
  input [3:0] rows,
  input [3:0] collected_mode, mode,
  input [8*SLICE_BYTES*SLICES-1:0] collected, block,
  input valid,
  input [3:0] left,
  input [6:0] place,
  input [63:0] masks
);
  localparam int MASK_BYTES = 8;

  (* anyconst *) reg [2:0] row, lane;

  wire enters = i_valid & i_ready, leaves = o_valid & o_ready;
  function automatic [3:0] ones(input [7:0] bits);
    ones = 4'(bits[0]) + 4'(bits[1]) + 4'(bits[2]) + 4'(bits[3]) + 4'(bits[4]) + 4'(bits[5]) + 4'(bits[6]) + 4'(bits[7]);
  endfunction

  // Slices and blocks that have entered, counted outside, and the output of the block that is followed
  reg [3:0] next_slice = 0;
  reg whole = 0;                    // the block has entered whole
  reg [6:0] got;                    // bytes of it that have entered
  reg [63:0] known_mask;
  reg [7:0] known_value;
  reg [2:0] gone;                   // rows of it that have left
  wire closes = leaves & o_ends;
  wire starts, follows;
  wire [1:0] held_blocks, ahead;    // blocks: whole ones inside, those that leave before
  follow #(.ITEM(1), .SIZE(2), .CAPACITY(3)) block_followed (
    .candidate(enters & next_slice == 0), .ahead_of_new(held_blocks), .new_item(1'b0), .entering({1'b0, enters & i_ends}),
    .leaving({1'b0, closes}), .held(held_blocks), .chosen(starts), .active(), .ahead(), .item(), .followed(follows),
    .ahead_later(ahead), .item_later(), .*
  );
  wire belongs = starts | (enters & follows & ~whole);
  wire is_it = follows & ahead == 0;

  wire [63:0] mask = starts ? i_data[63:0] : known_mask;
  wire [7:0] row_mask = mask[8*row +: 8];
  wire present = row_mask[lane];
  wire [8:0][6:0] begins;  // where the rows begin
  assign begins[0] = MASK_BYTES;
  genvar r;
  generate
    for (r = 0; r < 8; r = r + 1) assign begins[r+1] = begins[r] + ones(mask[8*r +: 8]);
  endgenerate
  wire [6:0] at = begins[row] + ones(row_mask & ~(8'hff << lane));
  wire [6:0] offset = starts ? 0 : got, at_slice = at - offset;

  always @(posedge clk) begin
    if (enters) next_slice <= i_ends ? 0 : next_slice + 1;
    if (starts) gone <= 0;
    else if (is_it & leaves) gone <= gone + 1;
    if (belongs) begin
      whole <= i_ends;
      got <= offset + SLICE_BYTES;
      known_mask <= mask;
      if (at >= offset && at_slice < SLICE_BYTES) known_value <= i_data[8*at_slice +: 8];
    end
    if (rst) next_slice <= 0;
  end
  // Promise of promised_slices, by the number that is known here
  always @* if (i_valid) assume (next_slice < SLICES - 1 || i_ends);

  wire missing = present & at >= got;
  wire [7:0] value = present ? known_value : 0;
  always @* if (started & ~rst & is_it & o_valid) begin
    in_order: assert (whole);
    end_of_block: assert (o_ends == (gone == 7));
    if (gone == row && !missing) content: assert (o_values[8*lane +: 8] == value);
  end

  // Inside: whether the block is the one that is read, and how many rows of it have been
  reg loaded = 0;
  reg [3:0] moved = 0;
  wire advance = ~o_valid | o_ready;
  wire turn = full & (~valid | (advance & left == 1));
  always @(posedge clk) begin
    if (advance & loaded) moved <= moved + 1;
    if (advance & loaded & moved == 7) loaded <= 0;
    if (turn & follows & whole & ~loaded & moved == 0) loaded <= 1;
    if (closes & moved == 8) moved <= 0;
    if (rst) {loaded, moved} <= 0;
  end
  wire collecting = follows & ~loaded & moved == 0;

  always @* if (started & ~rst) begin
    slices_in: assert (number == next_slice && (!full || next_slice == 0));
    if (full) rows_in: assert (rows == 8 && collected_mode == MODE);
    if (next_slice != 0) part_in: assert (rows == 8 && collected_mode == MODE);
    if (valid) rows_left: assert (left != 0 && left <= 8 && mode == MODE);
    rows_out: assert ((valid & left != 8) == (o_valid & ~o_ends));
    blocks_in: assert (held_blocks == 2'(full) + 2'(valid) + 2'(o_valid & o_ends));
    if (~follows) nowhere: assert (~loaded & moved == 0);
    if (follows) begin
      order: assert (ahead == (collecting ? 2'(full & ~whole) + 2'(valid) + 2'(o_valid & o_ends) : 2'(moved == 0 & o_valid)));
      bound: assert (got >= SLICE_BYTES && got <= SLICE_BYTES * SLICES);
      if (~whole) part_of_it: assert (collecting & ~full & next_slice != 0 && got == SLICE_BYTES * next_slice);
      if (collecting) begin
        whole_waits: assert (~whole | full);
        collected_mask: assert (collected[63:0] == known_mask);
        if (present & ~missing) collected_value: assert (collected[8*at +: 8] == known_value);
      end
      if (loaded) begin
        read: assert (whole & valid & moved < 8 & left == 8 - moved);
        following: assert (place == begins[moved] && masks == known_mask >> 8 * moved);
        if (present & ~missing) block_value: assert (block[8*at +: 8] == known_value);
      end
      if (moved == 0) none_given: assert (gone == 0);
      else begin
        given: assert (whole & o_valid & moved <= 8 & gone == moved - 1 & o_ends == (moved == 8));
        goes_on: assert (loaded | moved == 8);
        if (gone == row & ~missing) given_value: assert (o_values[8*lane +: 8] == value);
      end
    end
  end
endmodule
