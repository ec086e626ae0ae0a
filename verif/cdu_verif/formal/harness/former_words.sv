// Words leave in the order in which they came, and of these the ones that closed a burst are marked as the last of one. Bursts
// leave in the order in which they were closed, with the number of their words. So the marks part the words as bursts say.
module former_words #(
  parameter int WORDS,  // that wait, one that is offered besides
  parameter int BURSTS
) (
  input clk, rst, started,
  input i__valid, i__ready, closed,
  input o__valid, o__ready, o_last,
  input bursts__valid, bursts__ready,
  input [4:0] bursts_words
);
  localparam int SIZE = $clog2(WORDS + 2);
  wire comes = i__valid & i__ready;

  wire [SIZE-1:0] words_inside, words_ahead;
  wire ends, word_followed;
  follow #(.ITEM(1), .SIZE(SIZE), .CAPACITY(WORDS + 1)) word (
    .candidate(comes), .ahead_of_new(words_inside), .new_item(closed),
    .entering(SIZE'(comes)), .leaving(SIZE'(o__valid & o__ready)),
    .held(words_inside), .followed(word_followed), .ahead_later(words_ahead), .item_later(ends),
    .chosen(), .active(), .ahead(), .item(), .*
  );

  reg [4:0] came;  // words since the last burst was closed
  always @(posedge clk)
    if (rst) came <= 0;
    else if (comes) came <= closed ? 0 : came + 1;
  wire [2:0] bursts_inside, bursts_ahead;
  wire [4:0] words_of_burst;
  wire burst_followed;
  follow #(.ITEM(5), .SIZE(3), .CAPACITY(BURSTS)) burst (
    .candidate(closed), .ahead_of_new(bursts_inside), .new_item(came + 5'd1),
    .entering(3'(closed)), .leaving(3'(bursts__valid & bursts__ready)),
    .held(bursts_inside), .followed(burst_followed), .ahead_later(bursts_ahead), .item_later(words_of_burst),
    .chosen(), .active(), .ahead(), .item(), .*
  );

  always @* if (started & ~rst) begin
    when_it_comes: assert (~closed | comes);
    if (o__valid & word_followed & words_ahead == 0) marked: assert (o_last == ends);
    if (bursts__valid & burst_followed & bursts_ahead == 0) counted: assert (bursts_words == words_of_burst);
  end
endmodule
