// Rows of the blocks that are a lane's turn leave at that lane, one by one, marked where a block ends.
//
// The lane is any one. The end of a row's block, the last block of its job, and one bit are followed. Helper
// invariants tell its place: the lane holds the rows of its words but for those of the oldest one that have left.
module distributor_order #(
  parameter int LANES,
  parameter int BEATS,       // rows of a word
  parameter int ROW_BITS,
  parameter int BLOCK_SIDE,
  parameter int WIDTH,       // of a word, and the places of its fields
  parameter int COUNT_AT,
  parameter int ENDS_AT,
  parameter int LAST_AT
) (
  input clk, rst, started,
  input i__valid, i__ready,
  input [BEATS*ROW_BITS-1:0] i_values,
  input [$clog2(BEATS+1)-1:0] i_count,
  input i_ends, i_last,
  // Ports of the lanes
  input [LANES-1:0] o_valid, o_ready, o_ends, o_last,
  input [LANES-1:0][ROW_BITS-1:0] o_values,
  input [LANES-1:0][BLOCK_SIDE/BEATS*WIDTH-1:0] inner_words,
  input [LANES-1:0][BLOCK_SIDE/BEATS-1:0] inner_held,
  input [LANES-1:0][$clog2(BLOCK_SIDE/BEATS)-1:0] inner_entering, inner_leaving,
  input [LANES-1:0][$clog2(BEATS)-1:0] inner_row,
  input [$clog2(LANES)-1:0] inner_turn
);
  localparam int WORDS = BLOCK_SIDE / BEATS, TURN_BITS = $clog2(LANES), SIZE = 5;

  (* anyconst *) wire [TURN_BITS-1:0] lane;
  (* anyconst *) wire [3:0] place;
  always @* assume (lane < LANES);
  always @* if (i__valid) assume (i_count >= 1 && i_count <= BEATS && (i_ends || i_count == BEATS));

  wire enters = i__valid & i__ready;
  reg [TURN_BITS-1:0] turn;
  always @(posedge clk)
    if (rst) turn <= 0;
    else if (enters & i_ends) turn <= turn == LANES - 1 ? 0 : turn + 1;
  wire here = enters & turn == lane;
  wire [SIZE-1:0] entering = here ? i_count : 0, leaving = o_valid[lane] & o_ready[lane];
  wire [BEATS-1:0] rows;
  first_bits #(.COUNT(BEATS), .SIZE(ROW_BITS)) bits_in (.items(i_values), .bits(rows));

  wire [SIZE-1:0] held, ahead, ahead_later;
  wire [2:0] item, item_later;
  wire active, followed;
  follow #(.ITEM(3), .SIZE(SIZE), .CAPACITY(BLOCK_SIDE + BEATS)) row_of_block (
    .candidate(here & place < i_count), .ahead_of_new(held + place),
    .new_item({i_ends & place + 1 == i_count, i_last, rows[place]}), .chosen(), .*
  );
  always @* if (started & ~rst & active & o_valid[lane] & ahead == 0)
    in_order: assert ({o_ends[lane], o_last[lane], o_values[lane][0]} == item);

  // Place of the row
  wire [WORDS*WIDTH-1:0] ring_words;
  choice #(.WIDTH(WORDS*WIDTH), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) words_of (
    .values(inner_words), .index(lane), .value(ring_words)
  );
  wire [WORDS-1:0] there, ends, last;
  wire [WORDS-1:0][BEATS-1:0] bits;
  wire [WORDS:0][4:0] sums;
  word_ring #(
    .BEATS(BEATS), .WORDS(WORDS), .WIDTH(WIDTH), .ROW_BITS(ROW_BITS),
    .COUNT_AT(COUNT_AT), .ENDS_AT(ENDS_AT), .LAST_AT(LAST_AT)
  ) ring (
    .inner_words(ring_words), .inner_held(inner_held[lane]),
    .inner_entering(inner_entering[lane]), .inner_leaving(inner_leaving[lane]), .slots(), .*
  );
  wire [4:0] at = ahead_later + inner_row[lane];
  wire [WORDS-1:0] stands;
  generate
    for (genvar n = 0; n < WORDS; n++) begin : word
      wire [4:0] in_word = at - sums[n];
      assign stands[n] = ~(followed & at >= sums[n] & at < sums[n+1])
        || item_later == {ends[n] & at + 1 == sums[n+1], last[n], bits[n][in_word]};
    end
  endgenerate
  always @* if (started) begin
    same_turn: assert (turn == inner_turn);
    rows_left: assert (there[0] ? inner_row[lane] < sums[1] : inner_row[lane] == 0);
    amount: assert (held == sums[WORDS] - inner_row[lane]);
    if (followed) present: assert (at < sums[WORDS] && ahead_later < 16);
    in_ring: assert (&stands);
  end
endmodule
