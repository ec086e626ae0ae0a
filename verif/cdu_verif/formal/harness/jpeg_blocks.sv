// Columns leave in blocks of eight with equal marks, and a block with an error is the last one of its scan.
module jpeg_blocks (
  input clk, rst,
  input o_valid, o_ready, o_last, o_error
);
  reg [2:0] number = 0;
  reg last = 0, error = 0;
  always @(posedge clk) if (rst) number <= 0; else if (o_valid & o_ready) begin
    number <= number + 1;
    last <= o_last;
    error <= o_error;
  end
  always @* if (!rst & o_valid) begin
    if (number != 0) marks: assert (o_last == last && o_error == error);
    if (o_error) ends: assert (o_last);
  end
endmodule
