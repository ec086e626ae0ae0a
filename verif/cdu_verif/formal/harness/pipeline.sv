// A value and what it was in the transfers before: registers that move on with a pipeline.
module pipeline #(
  parameter int WIDTH,
  parameter int STAGES
) (
  input clk, advance,
  input [WIDTH-1:0] value,
  output [STAGES:0][WIDTH-1:0] at  // after so many registers
);
  assign at[0] = value;
  generate
    for (genvar n = 0; n < STAGES; n++) begin : stage
      reg [WIDTH-1:0] held;
      always @(posedge clk) if (advance) held <= at[n];
      assign at[n+1] = held;
    end
  endgenerate
endmodule
