// Rows of blocks as a coder is promised them.
//
// Values are 0 or 1 in the modes of BINARY. A block has 8 rows, in modes that are not in WHOLE 1 to 8, and one tag.
module promised_rows #(
  parameter bit [15:0] WHOLE, BINARY,
  parameter int TAG_BITS
) (
  input clk, rst,
  input i_valid, i_ready, i_ends,
  input [63:0] i_values,
  input [3:0] i_mode,
  input [TAG_BITS-1:0] i_tag
);
  reg [2:0] number = 0;
  reg [TAG_BITS-1:0] tag;
  always @(posedge clk)
    if (rst) number <= 0;
    else if (i_valid & i_ready) begin
      number <= i_ends ? 0 : number + 1;
      tag <= i_tag;
    end
  always @* if (i_valid) begin
    assume (!BINARY[i_mode] || (i_values & {8{8'hfe}}) == 0);
    assume (number == 7 ? i_ends : !(i_ends & WHOLE[i_mode]));
    assume (number == 0 || i_tag == tag);
  end
endmodule
