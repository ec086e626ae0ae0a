// The tag of a block: its mode is of those in MODES, and the settings of a quantiser stand in those of SETTINGS only.
module promised_tag #(
  parameter bit [15:0] MODES, SETTINGS,
  parameter int QUANTIZER_BITS
) (
  input valid,
  input [3:0] mode,
  input [QUANTIZER_BITS-1:0] quantizer,
  input heads
);
  always @* if (valid) begin
    assume (MODES[mode]);
    assume (SETTINGS[mode] || {heads, quantizer} == 0);
  end
endmodule
