// The ring of words in a lane of a distributor or a gatherer: what its registers mean, and its words from the oldest one on.
module word_ring #(
  parameter int BEATS,      // rows of a word
  parameter int WORDS,      // words of the ring, a power of two
  parameter int WIDTH,      // bits of a word
  parameter int ROW_BITS,
  parameter int COUNT_AT,   // places of the fields in a word; its rows stand at the begin
  parameter int ENDS_AT,
  parameter int LAST_AT
) (
  input started,
  input [WORDS*WIDTH-1:0] inner_words,
  input [WORDS-1:0] inner_held,
  input [$clog2(WORDS)-1:0] inner_entering, inner_leaving,
  output [WORDS-1:0][$clog2(WORDS)-1:0] slots,  // where a word stands
  output [WORDS-1:0] there, ends, last,         // its fields
  output [WORDS-1:0][BEATS-1:0] bits,           // the first bit of each of its rows
  output [WORDS:0][4:0] sums                    // rows of the words before it
);
  localparam int COUNT_BITS = $clog2(BEATS + 1);

  wire [WORDS-1:0] words_hold, order_holds;
  assign sums[0] = 0;
  generate
    for (genvar n = 0; n < WORDS; n++) begin : entry
      assign slots[n] = inner_leaving + n;
      wire [WIDTH-1:0] word = inner_words >> (WIDTH * slots[n]);
      wire [COUNT_BITS-1:0] count = word[COUNT_AT +: COUNT_BITS];
      first_bits #(.COUNT(BEATS), .SIZE(ROW_BITS)) first (.items(word[BEATS*ROW_BITS-1:0]), .bits(bits[n]));
      assign there[n] = inner_held[slots[n]];
      assign ends[n] = word[ENDS_AT];
      assign last[n] = word[LAST_AT];
      assign sums[n+1] = sums[n] + (there[n] ? count : 0);
      assign words_hold[n] = ~there[n] || (count >= 1 && count <= BEATS && (ends[n] || count == BEATS));
      // Words stand side by side, and the next one enters behind the last
      assign order_holds[n] = (n == 0 || ~there[n] || there[n > 0 ? n - 1 : 0])
        && (~there[n] || there[(n + 1) % WORDS] || inner_entering == slots[(n + 1) % WORDS]);
    end
  endgenerate
  always @* if (started) begin
    words: assert (&words_hold);
    joined: assert (&order_holds);
    if (&there | ~there[0]) meet: assert (inner_entering == inner_leaving);
  end
endmodule
