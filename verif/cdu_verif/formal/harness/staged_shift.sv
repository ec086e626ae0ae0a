// A shift step by step, down from the largest step, up from the smallest: as devices do it, so that solvers find them equal.
module staged_shift #(
  parameter int WIDTH,
  parameter int STAGES,
  parameter bit UP
) (
  input [WIDTH-1:0] bits,
  input [STAGES-1:0] places,
  output [WIDTH-1:0] moved
);
  wire [STAGES:0][WIDTH-1:0] after;

  assign after[0] = bits;
  assign moved = after[STAGES];
  generate
    for (genvar n = 0; n < STAGES; n++) begin : stage
      localparam int STEP = 1 << (UP ? n : STAGES - 1 - n);
      assign after[n+1] = ~places[UP ? n : STAGES - 1 - n] ? after[n] : UP ? after[n] << STEP : after[n] >> STEP;
    end
  endgenerate
endmodule
