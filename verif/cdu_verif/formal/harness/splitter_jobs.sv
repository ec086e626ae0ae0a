// A job of any number of beats has its last block where these end, and the splitter is not idle while there are more than
// two blocks of it.
//
// The first job behind the reset is followed, with one lane.
module splitter_jobs #(
  parameter int BEATS_BITS,
  parameter int BLOCK_SIDE
) (
  input clk, rst,
  input job_valid, job_ready,
  input [BEATS_BITS-1:0] job_beats,
  input o_valid, o_ready, o_ends, o_last,
  input [3:0] o_rows,
  input idle
);
  reg taken = 0, over = 0;
  reg [BEATS_BITS-1:0] left;  // beats of the blocks that have not left
  wire [3:0] rows = left < BLOCK_SIDE ? left : BLOCK_SIDE;
  always @(posedge clk)
    if (rst) begin
      taken <= 0;
      over <= 0;
    end else begin
      taken <= taken | (job_valid & job_ready);
      if (!taken) left <= job_beats;
      else if (o_valid & o_ready & o_ends & !over) begin
        left <= left - rows;
        over <= o_last;
      end
    end
  always @* if (!rst & !taken & job_valid) assume (job_beats != 0);
  always @* if (!rst & taken & !over & o_valid) begin
    last_block: assert (!o_ends || o_last == (left <= BLOCK_SIDE));
    rows_of_block: assert (o_rows == rows);
  end
  always @* if (!rst & taken & !over & left > 2 * BLOCK_SIDE) busy: assert (!idle);
endmodule
