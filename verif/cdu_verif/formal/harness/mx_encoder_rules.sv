// Meaning of the encoder's counters: rows in the line may leave, or belong to the block that comes in.
//
// While a row that heads a block waits to leave, the block's other rows are still there, so that its scale stays.
module mx_encoder_rules #(
  parameter int ROWS
) (
  input clk, rst, started,
  input o__valid,
  input [ROWS-1:0] inner_waiting,
  input [$clog2(ROWS):0] inner_left,
  input [$clog2(ROWS)-1:0] inner_number,
  input inner_heads
);
  always @* if (started) begin
    rows: assert ($countones(inner_waiting) == inner_left + inner_number);
    heads: assert (!(o__valid & inner_heads) | inner_left == ROWS - 1);
  end
endmodule
