// A writer has no more than MOST bursts without an answer, tells of a packet when all of its bursts have one, in the order in
// which memory answers, and tells then whether one of them was refused.
module unanswered_bursts #(parameter MOST = 31, FAILED = 33) (
  input clk, rst, started,
  input answer, answer_failed, result__valid, result__ready,
  input [FAILED:0] result__payload,
  input inner_former__closed, inner_window__finishes,
  input [4:0] inner_unanswered, inner_due,
  input inner_expects, inner_refused
);
  reg [6:0] open;  // bursts that are complete and have no answer
  reg [6:0] owed;  // those of the packet that has ended
  reg waits, told;  // it has no result yet; its result has not been taken
  reg refused, failed;  // a burst of it was refused, or one of the packet behind it
  wire fails = answer & answer_failed;
  always @(posedge clk)
    if (rst) begin
      open <= 0; owed <= 0; waits <= 0; told <= 0; refused <= 0; failed <= 0;
    end else begin
      open <= open + inner_former__closed - answer;
      if (told & result__ready) told <= 0;
      if (inner_window__finishes) begin
        owed <= open + inner_former__closed - answer;
        waits <= 1; refused <= failed | fails; failed <= 0;
      end else if (owed != 0) begin
        owed <= owed - answer; refused <= refused | fails;
      end else begin
        failed <= failed | fails;
        if (waits) begin waits <= 0; told <= 1; end
      end
    end
  // Memory answers bursts that there are.
  always @* if (answer) assume (open != 0);
  always @* if (started & ~rst) begin
    counted: assert (open == inner_unanswered && owed == inner_due && owed <= open);
    limited: assert (open <= MOST);
    settled: assert (result__valid == told && (~told | owed == 0));
    one_at_a_time: assert (~(waits & told) && ~(inner_window__finishes & (waits | told)));
    same: assert (waits == inner_expects && failed == inner_refused);
    truth: assert (~(waits | told) | refused == result__payload[FAILED]);
  end
endmodule
