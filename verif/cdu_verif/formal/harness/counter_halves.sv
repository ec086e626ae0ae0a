// Reading the low half of a counter keeps the high half for the reading that follows, so that both are of one moment.
module counter_halves #(
  parameter int HALF       // bits
) (
  input clk, rst, started,
  input read,              // of the low half, in a cycle in which nothing is cleared
  input [2*HALF-1:0] counted,
  input [HALF-1:0] high    // as the register shows it two cycles later
);
  reg [2:1] was_read;
  reg [HALF-1:0] past1, past2;
  always @(posedge clk) begin
    was_read <= rst ? 0 : {was_read[1], read};
    {past2, past1} <= {past1, counted[2*HALF-1:HALF]};
  end
  always @* if (started && was_read[2]) one_number: assert (high == past2);
endmodule
