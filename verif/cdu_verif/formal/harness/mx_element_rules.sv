// The code of a value against its definition, for all values and all greatest magnitudes that are no less.
module mx_element_rules #(
  parameter int FORMAT,
  parameter int FRACTION_BITS,
  parameter int OCTAVES,
  parameter int BIAS,
  parameter int GREATEST,
  parameter bit INTEGER,
  parameter int BITS,
  parameter int EMAX,
  parameter int FRACTION
) (
  input [31:0] value,
  input [31:0] most,  // the greatest one of the block, whatever its sign
  input [2:0] format,
  input rceil,
  input [7:0] code
);
  always @* assume (format == 3'(FORMAT) & value[30:0] <= most[30:0]);

  wire [7:0] scale;
  wire [BITS-1:0] expected;
  mx_scale_reference #(
    .FRACTION_BITS(FRACTION_BITS), .EMAX(EMAX), .FRACTION(FRACTION)
  ) of_block (.most(most[30:0]), .rceil(rceil), .scale(scale));
  mx_element_reference #(
    .FRACTION_BITS(FRACTION_BITS), .OCTAVES(OCTAVES), .BIAS(BIAS), .GREATEST(GREATEST), .INTEGER(INTEGER), .BITS(BITS)
  ) of_value (.value(value), .scale(scale), .code(expected));
  always @* codes: assert (code == (scale == 255 ? 0 : expected));
endmodule
