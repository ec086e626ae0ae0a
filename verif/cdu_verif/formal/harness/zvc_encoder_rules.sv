// A block leaves the encoder of ZVC as its mask and then its values that are not zero, in their order, in full slices.
//
// A block, and in it a value, are chosen freely and followed: its bit of the mask, its place among the bytes, its byte.
module zvc_encoder_rules #(
  parameter int SLICE_BYTES,
  parameter int COUNT_BITS
) (
  input clk, rst, started,
  input i_valid, i_ready, i_ends,
  input [63:0] i_values,
  input o_valid, o_ready, o_ends,
  input [8*SLICE_BYTES-1:0] o_data,
  input [COUNT_BITS-1:0] o_count,
  input [3:0] o_rows,
  // of the device: the row that was taken, the block that it is added to, the one that leaves
  input taken, taken_ends, taken_zvc,
  input [63:0] kept_bytes,
  input [3:0] kept_count,
  input [7:0] row_mask,
  input full,
  input [2:0] number,
  input [6:0] fill,
  input [3:0] rows,
  input [575:0] block, leaving,
  input [6:0] left
);
  localparam int MASK_BYTES = 8;

  (* anyconst *) reg [2:0] row, lane;
  (* anyconst *) reg [COUNT_BITS-1:0] behind;

  wire enters = i_valid & i_ready, leaves = o_valid & o_ready;
  wire [7:0] mask, mask_before = mask & ~(8'hff << lane);
  genvar l;
  generate
    for (l = 0; l < 8; l = l + 1) assign mask[l] = i_values[8*l +: 8] != 0;
  endgenerate
  function automatic [3:0] ones(input [7:0] bits);
    ones = 4'(bits[0]) + 4'(bits[1]) + 4'(bits[2]) + 4'(bits[3]) + 4'(bits[4]) + 4'(bits[5]) + 4'(bits[6]) + 4'(bits[7]);
  endfunction

  // Rows and blocks that have entered, counted outside, and the output of the block that is followed
  reg [2:0] next_row = 0;
  reg [3:0] seen = 0;  // rows of the block
  reg [6:0] total, at, gone;
  reg [7:0] value;
  wire closes = leaves & o_ends;
  wire starts, follows;
  wire [1:0] held_blocks, ahead;    // blocks: whole ones inside, those that leave before
  follow #(.ITEM(1), .SIZE(2), .CAPACITY(3)) block_followed (
    .candidate(enters & next_row == 0), .ahead_of_new(held_blocks), .new_item(1'b0), .entering({1'b0, enters & i_ends}),
    .leaving({1'b0, closes}), .held(held_blocks), .chosen(starts), .active(), .ahead(), .item(), .followed(follows),
    .ahead_later(ahead), .item_later(), .*
  );
  wire belongs = starts | (enters & follows & seen != 8);
  wire [2:0] place = starts ? 0 : seen[2:0];
  wire [6:0] base = starts ? 7'(MASK_BYTES) : total;
  wire is_it = follows & ahead == 0;

  always @(posedge clk) begin
    if (enters) next_row <= i_ends ? 0 : next_row + 1;
    if (starts) gone <= 0;
    else if (is_it & leaves) gone <= gone + SLICE_BYTES;
    if (belongs) begin
      seen <= place + 1;
      total <= base + ones(mask);
      if (place == row) begin
        at <= base + ones(mask_before);
        value <= i_values[8*lane +: 8];
      end
    end
    if (rst) next_row <= 0;
  end

  // Promise of promised_rows, by the number that is known here
  always @* if (i_valid) assume (i_ends == (next_row == 7));

  wire [6:0] rest = total - gone;
  wire [6:0] mask_at = 7'(row) - gone, value_at = at - gone;
  always @* if (started & ~rst & is_it & o_valid) begin
    whole: assert (seen == 8 && o_rows == 8);
    slices: assert (o_ends == (rest <= SLICE_BYTES) && o_count == (o_ends ? rest : SLICE_BYTES) && o_count != 0);
    if (row >= gone && mask_at < SLICE_BYTES) masks: assert (o_data[8*mask_at + lane] == (value != 0));
    if (value != 0 && at >= gone && value_at < SLICE_BYTES) values: assert (o_data[8*value_at +: 8] == value);
    if (behind >= o_count && behind < SLICE_BYTES) zeros: assert (o_data[8*behind +: 8] == 0);
  end

  // Inside: what the stages have of the block
  reg held = 0, sent = 0;  // its last row is the one that was taken; it is leaving
  reg [3:0] added = 0;     // its rows in the block that rows are added to
  reg [3:0] last_ones, rank;
  wire moves_on = full & (~o_valid | (o_ready & o_ends));
  always @(posedge clk) begin
    if (i_ready) held <= belongs;
    if (belongs) last_ones <= ones(mask);
    if (belongs & place == row) rank <= ones(mask_before);
    if (i_ready & held) added <= added + 1;
    if (moves_on & added == 8) begin
      added <= 0;
      sent <= 1;
    end
    if (closes & sent) sent <= 0;
    if (rst) {held, sent, added} <= 0;
  end
  wire [6:0] behind_it = added == 0 ? MASK_BYTES : fill;

  always @* if (started & ~rst) begin
    if (taken) row_taken: assert (taken_zvc && taken_ends == (number == 7));
    rows_in: assert (next_row == 3'(number + taken));
    if (full) block_full: assert (number == 0 && rows == 8);
    if (o_valid) rows_out: assert (o_rows == 8);
    blocks_in: assert (held_blocks == 2'(taken & taken_ends) + 2'(full) + 2'(o_valid));
    if (~follows) nowhere: assert (~held & ~sent & added == 0);
    if (follows) begin
      somewhere: assert (seen != 0 && seen <= 8 && seen == (sent ? 4'd8 : added + held));
      leaves_whole: assert (~sent | (~held & added == 0));
      if (seen != 8) last_in: assert (held == taken);
      order: assert (ahead == (sent ? 0 : 2'(o_valid) + 2'(full & added == 0) + 2'(taken & taken_ends & ~held)));
      if (held) row_of_it: assert (taken && number == added && kept_count == last_ones && last_ones <= 8);
      if (added != 0) begin
        block_of_it: assert (full == (added == 8) && number == added[2:0]);
        bytes_of_it: assert (fill == total - (held ? last_ones : 0));
      end
      if (held & added == 0) first_row: assert (total == MASK_BYTES + last_ones);
      bound: assert (total >= MASK_BYTES && total <= MASK_BYTES + 8 * seen);
      bound_added: assert (behind_it >= MASK_BYTES && behind_it <= MASK_BYTES + 8 * added);
      begins: assert (sent | gone == 0);
      if (seen > row) placed: assert (at >= MASK_BYTES && (value == 0 || at < total));
      if (held & added == row) begin
        taken_at: assert (at == behind_it + rank && rank <= lane && (value == 0 || rank < kept_count));
        taken_mask: assert (row_mask[lane] == (value != 0));
        if (value != 0) taken_value: assert (kept_bytes[8*rank +: 8] == value);
      end
      if (added > row) begin
        added_mask: assert (block[8*row + lane] == (value != 0));
        if (value != 0) added_value: assert (at < fill && block[8*at +: 8] == value);
      end
      if (sent) begin
        sent_bytes: assert (o_valid && left == rest && gone < total);
        if (row >= gone) sent_mask: assert (leaving[8*mask_at + lane] == (value != 0));
        if (value != 0 && at >= gone) sent_value: assert (leaving[8*value_at +: 8] == value);
      end
    end
  end
endmodule
