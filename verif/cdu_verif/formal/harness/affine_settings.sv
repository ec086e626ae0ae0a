// Meaning of the settings at the input of the affine quantiser or its inverse, by the definition, and the ones allowed.
//
// Blocks of mode division may be statistics, which pass as values of other modes do.
module affine_settings #(
  parameter int BASE_BITS,
  parameter int MANTISSA_BITS,
  parameter int MAX_EXPONENT,
  parameter [15:0] MODES,         // bit n: mode n is built in
  parameter [15:0] AFFINE_MODES,  // bit n: mode n has codes
  parameter int DIVISION,
  parameter int ACTNN
) (
  input i__valid,
  input [3:0] mode,
  input [1:0] bits_log2,
  input [3:0] step_log2,
  input block_range, i_statistics,
  input signed [BASE_BITS-1:0] low,
  input [MANTISSA_BITS-1:0] mantissa,
  input [3:0] exponent,
  output affine,                          // the values have codes
  output found, centred,                  // the step is found from the block; its range lies around the mean
  output [7:0] most_code,                 // greatest code, B
  output signed [39:0] wide_low,          // least value or mean that was found
  output signed [39:0] middle_low,        // Z of a range around a mean
  output signed [39:0] fixed_low          // Z of a range around zero
);
  wire statistics = mode == DIVISION && i_statistics;
  wire [3:0] bits = 1 << bits_log2;

  assign affine = AFFINE_MODES[mode] && !statistics;
  assign centred = mode == DIVISION && !block_range;
  assign found = mode == ACTNN || (mode == DIVISION && block_range);
  assign most_code = (1 << bits) - 1;
  assign wide_low = low;
  assign middle_low = wide_low - ((most_code << step_log2) >> 1);
  assign fixed_low = -(1 << (bits - 1 + step_log2));

  always @* if (i__valid) begin
    assume (MODES[mode]);
    if (affine && !found) assume (bits + step_log2 <= BASE_BITS && (!centred || step_log2 >= 1));
    if (statistics) assume (!block_range);
    if (found) assume (mantissa >= 1 && exponent <= MAX_EXPONENT);
  end
endmodule
