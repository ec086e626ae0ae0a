// Beginning of a block: the category of DC and the place of the rest; then DC, from the bits that follow.
module gmc_begin (
  input [11:0] head,
  output [3:0] dc_at, category,
  input [3:0] dc_category,
  input [8:0] dc_bits,  // the sign, and the magnitude without its highest bit
  output [7:0] dc
);
  wire long = head[7:0] >= 200;
  wire [7:0] highest = 1 << (dc_category - 1);
  wire [7:0] magnitude = highest | (dc_bits[8:1] & (highest - 1));

  assign dc_at = long ? 12 : 8;
  assign category = ~long ? head[2:0] : head[11:8] > 8 ? 8 : head[11:8];
  assign dc = dc_category == 0 ? 0 : dc_category == 8 ? (dc_bits[0] ? 8'h80 : 8'h7f) : dc_bits[0] ? -magnitude : magnitude;
endmodule
