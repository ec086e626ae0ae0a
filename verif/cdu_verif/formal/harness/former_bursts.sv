// Words that follow one another in memory become bursts that do; what enters the queue is a burst that AXI4 allows, and has
// the words that came since the one before.
module former_bursts #(parameter WORD_BITS = 3) (
  input clk, rst, started,
  input i__valid, i__ready, i_last,
  input [39:0] i_address,
  input closed,
  input inner_queue__w_en,
  input [44:0] inner_queue__w_data,
  input [3:0] inner_open_words,
  input [39:0] inner_first
);
  localparam PAGE = 12 - WORD_BITS;
  wire takes = i__valid & i__ready;
  wire [39-WORD_BITS:0] word = i_address >> WORD_BITS;
  reg follows;                    // the last word was not the end of a run
  reg [39-WORD_BITS:0] expected;  // the word behind it
  reg [4:0] came;                 // words since the last burst was closed
  reg [39-WORD_BITS:0] first;     // the first of them
  always @(posedge clk) begin
    if (rst) begin follows <= 0; came <= 0; end
    else if (takes) begin
      follows <= ~i_last;
      expected <= word + 1;
      came <= closed ? 0 : came + 1;
      if (came == 0) first <= word;
    end
  end
  always @* if (i__valid & came != 0) assume (word == expected);  // memory_writer places
  wire [39:0] address = inner_queue__w_data[39:0];
  wire [4:0] words = inner_queue__w_data[44:40];
  always @* if (started & ~rst) begin
    counted: assert (inner_open_words == came);
    kept: assert (came == 0 | (inner_first >> WORD_BITS) == first);
    run: assert (came == 0 | (follows & expected == first + came & (expected[PAGE-1:0] != 0)
                              & {1'b0, first[PAGE-1:0]} + came == {1'b0, expected[PAGE-1:0]}));
    if (inner_queue__w_en) begin
      begins: assert (address == {came == 0 ? word : first, {WORD_BITS{1'b0}}});
      ends: assert (words == came + 1 & words <= 16);
      inside_4k: assert ({1'b0, address[11:0]} + (words << WORD_BITS) <= 4096);
      once: assert (closed & takes);
    end
  end
endmodule
