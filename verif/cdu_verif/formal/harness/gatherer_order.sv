// Rows of a lane leave in words, in turn block by block; a word is full or ends its block.
//
// The lane is any one. The end of a row's block, the last block of its job, and one bit are followed. Helper
// invariants tell its place: the lane holds the rows of its words and those of a word that is not complete.
module gatherer_order #(
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
  input o__valid, o__ready,
  input [BEATS*ROW_BITS-1:0] o_values,
  input [$clog2(BEATS+1)-1:0] o_count,
  input o_ends, o_last,
  // Ports of the lanes
  input [LANES-1:0] i_valid, i_ready, i_ends, i_last,
  input [LANES-1:0][ROW_BITS-1:0] i_values,
  input [LANES-1:0][BLOCK_SIDE/BEATS*WIDTH-1:0] inner_words,
  input [LANES-1:0][BLOCK_SIDE/BEATS-1:0] inner_held,
  input [LANES-1:0][$clog2(BLOCK_SIDE/BEATS)-1:0] inner_entering, inner_leaving,
  input [LANES-1:0][$clog2(BEATS)-1:0] inner_row,
  input [$clog2(LANES)-1:0] inner_turn
);
  localparam int WORDS = BLOCK_SIDE / BEATS, WORD_BITS = $clog2(WORDS), TURN_BITS = $clog2(LANES), SIZE = 5;

  (* anyconst *) wire [TURN_BITS-1:0] lane;
  always @* assume (lane < LANES);
  generate
    for (genvar n = 0; n < LANES; n++) begin : block_of_lane
      reg [3:0] length;  // rows that have entered
      always @(posedge clk) length <= rst ? 0 : ~(i_valid[n] & i_ready[n]) ? length : i_ends[n] ? 0 : length + 1;
      always @* if (i_valid[n] & length == BLOCK_SIDE - 1) assume (i_ends[n]);
    end
  endgenerate

  wire leaves = o__valid & o__ready;
  reg [TURN_BITS-1:0] turn;
  always @(posedge clk)
    if (rst) turn <= 0;
    else if (leaves & o_ends) turn <= turn == LANES - 1 ? 0 : turn + 1;
  wire here = o__valid & turn == lane;
  wire [SIZE-1:0] entering = i_valid[lane] & i_ready[lane], leaving = leaves & here ? o_count : 0;

  wire [SIZE-1:0] held, ahead, ahead_later;
  wire [2:0] item, item_later;
  wire active, followed;
  follow #(.ITEM(3), .SIZE(SIZE), .CAPACITY(BLOCK_SIDE + BEATS)) row_of_block (
    .candidate(entering != 0), .ahead_of_new(held), .new_item({i_ends[lane], i_last[lane], i_values[lane][0]}), .chosen(), .*
  );
  wire [BEATS-1:0] rows;
  first_bits #(.COUNT(BEATS), .SIZE(ROW_BITS)) bits_out (.items(o_values), .bits(rows));
  wire [2:0] row_out = {o_ends & ahead + 1 == o_count, o_last, rows[ahead]};
  always @* if (started & ~rst & here) begin
    full: assert (o_count >= 1 && o_count <= BEATS && (o_ends || o_count == BEATS));
    if (active & ahead < o_count) in_order: assert (row_out[2] == item[2] && row_out[0] == item[0]);
    if (active & ahead < o_count & item[2]) tags: assert (row_out[1] == item[1]);
  end

  // Place of the row
  wire [WORDS*WIDTH-1:0] ring_words;
  choice #(.WIDTH(WORDS*WIDTH), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) words_of (
    .values(inner_words), .index(lane), .value(ring_words)
  );
  wire [WORD_BITS-1:0] ring_entering = inner_entering[lane];
  wire [WORDS-1:0] ring_held = inner_held[lane];
  wire [WORDS-1:0][WORD_BITS-1:0] slots;
  wire [WORDS-1:0] there, ends, last;
  wire [WORDS-1:0][BEATS-1:0] bits;
  wire [WORDS:0][4:0] sums;
  word_ring #(
    .BEATS(BEATS), .WORDS(WORDS), .WIDTH(WIDTH), .ROW_BITS(ROW_BITS),
    .COUNT_AT(COUNT_AT), .ENDS_AT(ENDS_AT), .LAST_AT(LAST_AT)
  ) ring (
    .inner_words(ring_words), .inner_held(ring_held),
    .inner_entering(ring_entering), .inner_leaving(inner_leaving[lane]), .*
  );
  wire [4:0] at = ahead_later;
  wire [4:0] in_begun = at - sums[WORDS];  // its place in a word that is not complete
  wire [WORDS-1:0] stands, stands_begun;
  generate
    for (genvar n = 0; n < WORDS; n++) begin : word
      wire [4:0] in_word = at - sums[n];
      assign stands[n] = ~(followed & at >= sums[n] & at < sums[n+1])
        || (item_later[0] == bits[n][in_word] && item_later[2] == (ends[n] & at + 1 == sums[n+1])
          && (~item_later[2] || item_later[1] == last[n]));
      assign stands_begun[n] = ~(followed & at >= sums[WORDS] & ring_entering == slots[n])
        || (item_later[0] == bits[n][in_begun] && ~item_later[2]);
    end
  endgenerate
  always @* if (started) begin
    same_turn: assert (turn == inner_turn);
    if (inner_row[lane] != 0) begun: assert (~ring_held[ring_entering]);
    amount: assert (held == sums[WORDS] + inner_row[lane]);
    if (followed) present: assert (at < sums[WORDS] + inner_row[lane] && ahead_later < 16);
    in_ring: assert (&stands);
    in_begun_word: assert (&stands_begun);
  end
endmodule
