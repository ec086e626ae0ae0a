// Words of an entropy-coded segment are full except for the last one, and hold no marker: 0 follows every byte of 255.
module jpeg_segment #(
  parameter int BYTES
) (
  input clk, rst,
  input o_valid, o_ready, o_last,
  input [8*BYTES-1:0] o_data,
  input [$clog2(BYTES+1)-1:0] o_count
);
  reg open = 0;  // the last byte of the word before is 255, and the segment goes on
  wire [BYTES-1:0] there, is_255, is_0;
  genvar place;
  generate
    for (place = 0; place < BYTES; place = place + 1) begin : each
      assign there[place] = o_count > place;
      assign is_255[place] = there[place] & &o_data[8*place +: 8];
      assign is_0[place] = there[place] & ~|o_data[8*place +: 8];
    end
  endgenerate
  always @(posedge clk) if (rst) open <= 0; else if (o_valid & o_ready) open <= is_255[BYTES-1] & ~o_last;
  always @* if (!rst & o_valid) begin
    full: assert (o_last | o_count == BYTES);
    escaped: assert (({is_255[BYTES-2:0], open} & ~is_0) == 0);
    if (o_last) ends: assert (!is_255[BYTES-1]);
  end
endmodule
