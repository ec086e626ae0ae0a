// The affine dequantiser: y = Z + code * D in some lanes; no word overflows, and -65536 < y < 65536.
//
// Z + B * D of found ranges is at most 65535, as is proven of the range finder; codes are at most B.
module affine_dequantizer_rules #(
  parameter int LANES,
  parameter [LANES-1:0] CHECKED,  // lanes that are compared
  parameter int BASE_BITS,
  parameter int VALUE_BITS,
  parameter int DECODED_BITS,
  parameter int MANTISSA_BITS,
  parameter int MAX_EXPONENT,
  parameter [15:0] MODES,
  parameter [15:0] AFFINE_MODES,
  parameter int DIVISION,
  parameter int ACTNN,
  parameter int BLPA
) (
  input clk, rst, started,
  input i__valid, i__ready, o__valid, o__ready,
  input [LANES-1:0][VALUE_BITS-1:0] i_values,
  input [3:0] i_mode,
  input [1:0] i_bits_log2,
  input [3:0] i_step_log2,
  input i_block_range,
  input signed [BASE_BITS-1:0] i_low,
  input [MANTISSA_BITS-1:0] i_mantissa,
  input [3:0] i_exponent,
  input signed [BASE_BITS-1:0] i_offset,
  input [LANES-1:0][DECODED_BITS-1:0] o_values,
  // Registers of the dequantiser, by stage and by lane
  input [2:1] inner_valid,
  input signed [DECODED_BITS-1:0] inner_low1,
  input [3:0] inner_exponent1,
  input [MANTISSA_BITS-1:0] inner_mantissa,
  input [LANES-1:0][VALUE_BITS-1:0] inner_code,
  input [LANES-1:0][15:0] inner_product
);
  localparam int DECODED_MAX = (1 << (DECODED_BITS - 1)) - 1;

  wire advance = ~o__valid | o__ready;
  reg [2:1] full = 0;
  always @(posedge clk)
    if (rst) full <= 0;
    else if (advance) full <= {full[1], i__valid};

  wire affine, found, centred;
  wire [7:0] most_code;
  wire signed [39:0] wide_low, middle_low, fixed_low;
  affine_settings #(
    .BASE_BITS(BASE_BITS), .MANTISSA_BITS(MANTISSA_BITS), .MAX_EXPONENT(MAX_EXPONENT),
    .MODES(MODES), .AFFINE_MODES(AFFINE_MODES), .DIVISION(DIVISION), .ACTNN(ACTNN)
  ) settings (
    .mode(i_mode), .bits_log2(i_bits_log2), .step_log2(i_step_log2), .block_range(i_block_range), .i_statistics(1'b0),
    .low(i_low), .mantissa(i_mantissa), .exponent(i_exponent), .*
  );

  // Z and D = m * 2**e of the row that enters
  wire signed [39:0] half = i_step_log2 == 0 ? 0 : 1 << (i_step_log2 - 1);
  wire signed [39:0] offset = i_offset;
  wire signed [39:0] blpa_low = fixed_low + offset + half;
  wire signed [39:0] low = found ? wide_low : centred ? middle_low : i_mode == BLPA ? blpa_low : fixed_low;
  wire [7:0] mantissa = found ? i_mantissa : 1;
  wire [3:0] exponent = found ? i_exponent : affine ? i_step_log2 : 0;

  // Value of the greatest code
  wire [15:0] limit = inner_mantissa * most_code;
  wire [31:0] distance_of_most = limit << exponent;
  wire signed [39:0] reach = wide_low + $signed({8'd0, distance_of_most});
  always @* if (i__valid & found) assume (reach <= DECODED_MAX);

  reg signed [39:0] low1, limit1;
  reg [3:0] exponent1;
  always @(posedge clk) if (advance) begin
    low1 <= affine ? low : -(1 << (VALUE_BITS - 1));
    limit1 <= affine ? limit : (1 << VALUE_BITS) - 1;
    exponent1 <= exponent;
  end
  always @* if (started) begin
    same: assert (inner_valid == full);
    if (full[1]) begin
      first: assert (inner_low1 == low1 && inner_exponent1 == exponent1);
      limits: assert (low1 >= -DECODED_MAX && low1 + $signed(limit1 << exponent1) <= DECODED_MAX);
    end
  end

  generate
    for (genvar n = 0; n < LANES; n++) begin : lane
      if (CHECKED[n]) begin : checked
        affine_dequantizer_lane #(.VALUE_BITS(VALUE_BITS), .DECODED_BITS(DECODED_BITS), .DECODED_MAX(DECODED_MAX)) rules (
          .value(i_values[n]), .decoded(o_values[n]), .inner_code(inner_code[n]), .inner_product(inner_product[n]), .*
        );
      end
    end
  endgenerate
endmodule
