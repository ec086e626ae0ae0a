// The bits in the window of a decoder: a slice stands behind those that are there, those of a column go.
//
// That holds whatever the registers contain.
module gmc_window_rules #(
  parameter int SLICE_BITS,
  parameter int WINDOW_BITS
) (
  input clk, started,
  input i__valid, i__ready,
  input [SLICE_BITS-1:0] i_data,
  input inner_busy, inner_more, inner_turn, inner_go,
  input [WINDOW_BITS-1:0] inner_window, inner_filled,
  input [$clog2(WINDOW_BITS+1)-1:0] inner_fill,
  input [SLICE_BITS-1:0] inner_first_bits,
  input [6:0] inner_length
);
  wire joins = inner_busy & inner_more & i__valid & i__ready;
  wire [WINDOW_BITS-1:0] left;
  reg [WINDOW_BITS-1:0] window;
  reg known = 0;
  staged_shift #(.WIDTH(WINDOW_BITS), .STAGES(7), .UP(1'b0)) take (.bits(inner_filled), .places(inner_length), .moved(left));
  always @(posedge clk) begin
    known <= 1;
    window <= inner_turn ? WINDOW_BITS'(inner_first_bits) : inner_go ? left : inner_window;
  end
  always @* begin
    joined: assert (inner_filled == (inner_window | (joins ? WINDOW_BITS'(i_data) << inner_fill : 0)));
    if (known) moved: assert (inner_window == window);
  end
endmodule
