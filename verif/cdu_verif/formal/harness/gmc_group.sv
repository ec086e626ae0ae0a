// The class of a group of coefficients, and which of them have fields.
module gmc_group (
  input [3:0][7:0] values,
  output [2:0] group_class,
  output [3:0] mask,
  output [3:0][7:0] fields  // sign and magnitude less one, or in the raw class the coefficient
);
  wire [3:0] nonzero;
  wire [3:0][7:0] magnitudes;
  wire [7:1] enough;  // class t does for all of them
  generate
    for (genvar n = 0; n < 4; n++) begin : coefficient
      assign nonzero[n] = values[n] != 0;
      assign magnitudes[n] = values[n][7] ? -values[n] : values[n];
      assign fields[n] = group_class == 7 ? values[n] : {7'(magnitudes[n] - 1), values[n][7]};
    end
    for (genvar t = 1; t < 7; t++) begin : coded
      localparam [7:0] MOST = 1 << (t - 1);
      assign enough[t] = magnitudes[0] <= MOST && magnitudes[1] <= MOST && magnitudes[2] <= MOST && magnitudes[3] <= MOST;
    end
  endgenerate
  assign enough[7] = 1;
  assign group_class = nonzero == 0 ? 0 : enough[1] ? 1 : enough[2] ? 2 : enough[3] ? 3 : enough[4] ? 4 : enough[5] ? 5
    : enough[6] ? 6 : 7;
  assign mask = group_class == 7 ? 15 : nonzero;
endmodule
