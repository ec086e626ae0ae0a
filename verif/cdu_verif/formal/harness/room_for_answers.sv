// A reader asks for no more words than it has room for, so that it takes every answer in the cycle in which it comes.
module room_for_answers #(parameter WORDS = 16) (
  input clk, rst, started,
  input bursts__valid, bursts__ready,
  input [4:0] bursts_words,
  input answer,
  input [4:0] inner_free, inner_arrived__level,
  input inner_arrived__o__valid,
  input inner_cutter__bursts__valid,
  input [44:0] inner_cutter__bursts__payload
);
  reg [5:0] asked;  // words that were asked for and have not come
  always @(posedge clk)
    if (rst) asked <= 0;
    else asked <= asked + (bursts__valid & bursts__ready ? bursts_words : 0) - answer;
  wire [4:0] waiting = inner_cutter__bursts__payload[44:40];  // words of the burst that waits for room
  // Memory answers what it was asked for.
  always @* if (answer) assume (asked != 0);
  always @* if (started & ~rst) begin
    counted: assert (inner_free + asked + inner_arrived__level + inner_arrived__o__valid == WORDS);
    taken: assert (~answer | inner_arrived__level < WORDS);
    waits: assert (~inner_cutter__bursts__valid | (waiting != 0 & waiting <= 16));
    short_enough: assert (~bursts__valid | (bursts_words != 0 & bursts_words <= 16));
  end
endmodule
