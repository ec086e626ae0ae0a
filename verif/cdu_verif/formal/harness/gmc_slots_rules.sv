// The slots of a block are its bits one behind the other: what it begins with, and its columns.
//
// One bit, at any place of every block, is followed. Places are counted from the slot that leaves next. That zeros stand behind
// what a block begins with and behind a column, and that first columns follow last ones, is proven by gmc_encoder_rules.sv.
module gmc_slots_rules #(
  parameter int SLOT_BITS,
  parameter int KEPT_BITS,
  parameter int COLUMN_BITS,
  parameter int BEGIN_BITS
) (
  input clk, rst, started,
  input [2:0] inner_valid, inner_first, inner_ends,
  input [BEGIN_BITS+5-1:0] inner_begin2,
  input [3:0] inner_category2,
  input [COLUMN_BITS+7-1:0] inner_column3,
  input inner_accepts, inner_waits, inner_whole,
  input [KEPT_BITS-1:0] inner_kept,
  input [$clog2(KEPT_BITS+1)-1:0] inner_place,
  input inner_store__i__valid, inner_store__i__ready,
  input [SLOT_BITS-1:0] part_data,
  input part_ends
);
  localparam int BODY_AT = 12, MOST = BODY_AT + BEGIN_BITS + COLUMN_BITS;

  (* anyconst *) wire [9:0] followed;

  // Input: a column, and before the first one the beginning of the block
  wire valid = inner_valid[2], first = inner_first[2], ends = inner_ends[2];
  wire [BEGIN_BITS-1:0] begin_bits = inner_begin2[BEGIN_BITS-1:0];
  wire [4:0] begin_length = inner_begin2[BEGIN_BITS +: 5];
  wire [COLUMN_BITS-1:0] column = inner_column3[COLUMN_BITS-1:0];
  wire [6:0] column_length = inner_column3[COLUMN_BITS +: 7];
  wire [4:0] column_at = first ? BODY_AT + begin_length : 0;
  wire [MOST-1:0] comes = (first ? {begin_bits, inner_category2, 8'd0} : 0) | MOST'(column) << column_at;
  wire [7:0] comes_length = column_at + column_length;
  reg [2:0] columns;  // of the block, that came
  wire between = columns == 0;  // blocks
  always @(posedge clk) columns <= rst ? 0 : columns + inner_accepts;
  always @* if (valid) begin
    assume (begin_bits >> begin_length == 0 && begin_length <= BEGIN_BITS);
    assume (column >> column_length == 0 && column_length <= COLUMN_BITS);
    assume (first == between && ends == (columns == 7));
  end

  // The bit that is followed: its place, or that it left, and what it is when it is among those that came
  reg signed [11:0] place, come;
  reg is, left, complete, open;
  wire slot = inner_store__i__valid & inner_store__i__ready;
  wire signed [11:0] place_now = first ? $signed({2'd0, followed}) : inner_waits ? place - SLOT_BITS : place;
  wire left_now = ~first & (left | (inner_waits & place < SLOT_BITS));
  wire signed [11:0] come_now = first ? 0 : inner_waits ? come - SLOT_BITS : come;
  wire signed [11:0] come_with = come_now + $signed({4'd0, comes_length});
  wire [11:0] place_in = place_now - come_now;
  wire is_now = place_now < come_now ? is : place_in < MOST ? comes[place_in] : 0;
  wire goes_through = slot & ~inner_waits;
  always @(posedge clk) begin
    if (inner_accepts) begin
      place <= place_now - (goes_through ? SLOT_BITS : 0);
      left <= left_now | (goes_through & place_now < SLOT_BITS);
      come <= come_with - (goes_through ? SLOT_BITS : 0);
      {is, complete} <= {is_now, ends};
    end else if (slot) begin
      place <= place - SLOT_BITS;
      left <= left | place < SLOT_BITS;
      come <= come - SLOT_BITS;
    end
    open <= rst ? 0 : inner_accepts ? ~(goes_through & part_ends) : open & ~(slot & part_ends);
  end

  reg [2:0] since_end;  // cycles
  always @(posedge clk) since_end <= rst ? 7 : slot & part_ends ? 1 : since_end == 7 ? 7 : since_end + 1;
  wire signed [11:0] place_out = inner_waits ? place : place_now, come_out = inner_waits ? come : come_with;
  wire left_out = inner_waits ? left : left_now;
  wire is_out = inner_waits ? place < come & is : is_now;
  wire complete_out = inner_waits ? complete : ends;
  always @* if (started) begin
    taken: assert (~inner_accepts | valid);
    leaving: assert (~slot | inner_waits | inner_accepts);
    waits: assert (~inner_waits | (open & inner_whole == complete));
    between_blocks: assert (between == (~open | complete));
    apart: assert (since_end >= columns && (~(slot & part_ends) | since_end == 7));
    if (open & complete) all_columns: assert (since_end == 7);
    if (slot) begin
      if (~left_out & place_out < SLOT_BITS) bit_of_slot: assert (part_data[place_out] == is_out);
      last_slot: assert (part_ends == (complete_out & come_out <= SLOT_BITS));
      full: assert (part_ends | come_out >= SLOT_BITS);
    end
    if (open) begin
      known: assert (inner_place == come && come >= 0 && (inner_waits | ~complete));
      bounds: assert (inner_waits & ~complete ? come >= SLOT_BITS && come < KEPT_BITS + 1 : come < SLOT_BITS);
      ahead: assert (left | (place >= 0 && place < 1024));
      if (~left & place < KEPT_BITS) kept: assert (inner_kept[place] == (place < come & is));
    end
  end
endmodule
