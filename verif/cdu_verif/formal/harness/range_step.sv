// The step of a block follows from its least and greatest value, with any stalls.
//
// D = m * 2**e is the least number with so many significant bits that is not below max(1, ceil(R / B)). So it covers the range,
// B * D >= R; and no code is decoded to more than 65535. Mean, least and greatest value stay as they are, for they are the
// statistics of a block.
module range_step #(
  parameter int BASE_BITS,
  parameter int BLOCK_VALUES,
  parameter int MANTISSA_BITS,
  parameter int MAX_EXPONENT,
  parameter int DIVISION
) (
  input clk, started,
  // Statistics of a block
  input found_valid, found_ready,
  input signed [BASE_BITS-1:0] found_least, found_most,
  input signed [BASE_BITS+$clog2(BLOCK_VALUES)-1:0] found_total,
  input [1:0] found_bits_log2,
  input found_block_range,
  input [3:0] found_mode,
  // Registers of the range finder, by stage
  input [BASE_BITS-1:0] inner_extent1, inner_low1, inner_quotient2, inner_low2,
  input [1:0] inner_bits1,
  input [2:1][BASE_BITS-1:0] inner_least, inner_most,
  // Range as it goes to the ranges that wait
  input signed [BASE_BITS-1:0] range_low,
  input [MANTISSA_BITS-1:0] range_mantissa,
  input [3:0] range_exponent,
  input [BASE_BITS-1:0] range_least, range_most
);
  localparam int VALUE_MAX = (1 << (BASE_BITS - 1)) - 1;
  localparam int DECODED_MAX = (1 << BASE_BITS) - 1;

  wire advance = found_ready;
  wire signed [31:0] total = found_total;
  wire [31:0] mean = (total + BLOCK_VALUES / 2) >>> $clog2(BLOCK_VALUES);
  wire is_centred = found_mode == DIVISION && !found_block_range;
  always @* if (found_valid) assume (found_most >= found_least);

  // The blocks in the stages
  wire [2:0] centred;
  wire [2:0][1:0] bits;
  wire [2:0][BASE_BITS-1:0] spread, low, least, most;
  reg [2:1] full = 0;
  always @(posedge clk) if (advance) full <= {full[1], found_valid};
  pipeline #(.WIDTH(1), .STAGES(2)) centred_of (.value(is_centred), .at(centred), .*);
  pipeline #(.WIDTH(2), .STAGES(2)) bits_of (.value(found_bits_log2), .at(bits), .*);
  pipeline #(.WIDTH(BASE_BITS), .STAGES(2)) spread_of (.value(found_most - found_least), .at(spread), .*);
  pipeline #(.WIDTH(BASE_BITS), .STAGES(2)) low_of (.value(is_centred ? mean[BASE_BITS-1:0] : found_least), .at(low), .*);
  pipeline #(.WIDTH(BASE_BITS), .STAGES(2)) least_of (.value(found_least), .at(least), .*);
  pipeline #(.WIDTH(BASE_BITS), .STAGES(2)) most_of (.value(found_most), .at(most), .*);
  wire signed [BASE_BITS-1:0] low1 = low[1], low2 = low[2];
  wire signed [BASE_BITS:0] spread1 = {1'b0, spread[1]}, spread2 = {1'b0, spread[2]};
  wire [BASE_BITS-1:0] less1 = spread[1] == 0 ? 0 : spread[1] - 1;
  wire [BASE_BITS-1:0] less2 = spread[2] == 0 ? 0 : spread[2] - 1;

  // ceil(R / B) - 1
  logic [7:0] most_code;
  logic [BASE_BITS-1:0] quotient;
  always @* begin
    most_code = 0;
    quotient = 0;
    for (int n = 0; n < 4; n++)
      if (bits[2] == n) begin
        most_code = (1 << (1 << n)) - 1;
        quotient = less2 / ((1 << (1 << n)) - 1);
      end
  end

  wire [BASE_BITS:0] need = quotient + 1;  // max(1, ceil(R / B))
  wire [31:0] step = range_mantissa << range_exponent;
  wire [31:0] reach = step * most_code;
  always @* if (started) begin
    if (full[1]) begin
      held1: assert (inner_extent1 == less1 && inner_bits1 == bits[1] && inner_low1 == low[1]);
      ends1: assert (inner_least[1] == least[1] && inner_most[1] == most[1]);
      ordered1: assert (centred[1] || low1 + spread1 <= VALUE_MAX);
    end
    if (full[2]) begin
      held2: assert (inner_quotient2 == quotient && inner_low2 == low[2]);
      ends2: assert (inner_least[2] == least[2] && inner_most[2] == most[2]);
      ordered2: assert (centred[2] || low2 + spread2 <= VALUE_MAX);
      bounds: assert (range_mantissa >= 1 && range_exponent <= MAX_EXPONENT
        && (range_exponent == 0 || range_mantissa[MANTISSA_BITS-1]));
      least_step: assert (step >= need && step - need < (1 << range_exponent));
      covers: assert (reach >= spread[2]);
      fits: assert (centred[2] || range_low + $signed(reach) <= DECODED_MAX);
      low_kept: assert (range_low == low2);
      ends_kept: assert (range_least == least[2] && range_most == most[2]);
    end
  end
endmodule
