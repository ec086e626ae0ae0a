// A counter is the sum of what happened since it was cleared, in all of its bits. What happens is counted one cycle later.
module counts #(
  parameter int BITS,      // of the counter
  parameter int MOST,      // bits of what may happen in a cycle
  parameter bit STOPS      // at its greatest value, instead of starting again
) (
  input clk, rst, started,
  input clear,             // the counter is zero in the next cycle
  input [MOST-1:0] happens,
  input [BITS-1:0] counted
);
  reg [MOST-1:0] happened;
  reg [BITS-1:0] sum;
  always @(posedge clk) begin
    happened <= rst ? 0 : happens;
    sum <= rst | clear ? 0 : STOPS && &sum ? sum : sum + happened;
  end
  always @* if (started) all_bits: assert (counted == sum);
endmodule
