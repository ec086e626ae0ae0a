// The four coefficients of a group, from its class, its mask and the bits that begin with its fields.
module gmc_fields (
  input [2:0] group_class,
  input [3:0] mask,
  input [31:0] bits,
  output [3:0][7:0] values,
  output [5:0] length
);
  wire [3:0] size = group_class == 7 ? 8 : group_class;
  wire [4:0][5:0] places;

  assign places[0] = 0;
  assign length = places[4];
  generate
    for (genvar n = 0; n < 4; n++) begin : coefficient
      wire [7:0] field = bits >> places[n];
      wire [7:0] magnitude = ((field >> 1) & ((1 << (size - 1)) - 1)) + 1;
      wire [7:0] coded = field[0] ? -magnitude : magnitude;
      assign values[n] = ~mask[n] ? 0 : group_class == 7 ? field : coded;
      assign places[n+1] = places[n] + (mask[n] ? size : 0);
    end
  endgenerate
endmodule
