// A transfer happens at least every so many cycles, once all inputs stay valid and all outputs ready.
//
// Everything is free before that moment; no reset follows it.
module progress #(
  parameter int CYCLES,
  parameter int STREAMS  // whose other end is outside
) (
  input clk, rst, reset,
  input [STREAMS-1:0] offered,  // valid of the inputs and ready of the outputs
  input transfer                // of a stream that is watched
);
  (* anyseq *) wire settles;
  reg settled = 0;
  wire calm = settled | settles;
  always @(posedge clk) settled <= calm;
  always @* if (calm) begin
    assume (~reset);
    assume (&offered);
  end

  reg [$clog2(CYCLES+1):0] cycles_waited = 0;
  always @(posedge clk) cycles_waited <= transfer | ~calm | rst ? 0 : cycles_waited + 1;
  always @* moves: assert (cycles_waited < CYCLES);
endmodule
