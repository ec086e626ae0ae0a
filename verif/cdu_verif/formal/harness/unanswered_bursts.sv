// A writer has no more than MOST bursts without an answer, and tells of a packet when all of its bursts have one.
module unanswered_bursts #(parameter MOST = 31) (
  input clk, rst, started,
  input answer, result__valid,
  input inner_former__closed,
  input [4:0] inner_unanswered
);
  reg [6:0] open;  // bursts that are complete and have no answer
  always @(posedge clk)
    if (rst) open <= 0;
    else open <= open + inner_former__closed - answer;
  // Memory answers bursts that there are.
  always @* if (answer) assume (open != 0);
  always @* if (started & ~rst) begin
    counted: assert (open == inner_unanswered);
    limited: assert (open <= MOST);
    settled: assert (~result__valid | open == 0);
  end
endmodule
