// The affine quantiser, stage by stage: the settings and random numbers of every row, and the arithmetic of some lanes.
//
// In mode autoquantz codes are given less half of their number, in two's complement; mode blpa always rounds down.
module affine_quantizer_rules #(
  parameter int LANES,
  parameter [LANES-1:0] CHECKED,  // lanes of which the arithmetic is compared
  parameter int BASE_BITS,
  parameter int VALUE_BITS,
  parameter int MANTISSA_BITS,
  parameter int MAX_EXPONENT,
  parameter int RECIPROCAL_SHIFT,
  parameter int FRACTION_BITS,
  parameter [15:0] MODES,
  parameter [15:0] AFFINE_MODES,
  parameter int DIVISION,
  parameter int ACTNN,
  parameter int BLPA,
  parameter int AUTOQUANTZ,
  parameter int WORD_BITS,
  parameter int ROUNDS,
  parameter [8*ROUNDS-1:0] CONSTANTS,
  parameter [16*4-1:0] SBOX,
  parameter [4*8-1:0] ROTATIONS,
  parameter int SECOND_ROTATION,
  parameter int NUMBER_BITS  // of a block
) (
  input clk, rst, started,
  input i__valid, i__ready, o__valid, o__ready,
  input [LANES-1:0][BASE_BITS-1:0] i_values,
  input i_ends,
  input [3:0] i_mode,
  input [1:0] i_bits_log2,
  input [3:0] i_step_log2,
  input i_stochastic, i_block_range, i_statistics,
  input signed [BASE_BITS-1:0] i_low,
  input [MANTISSA_BITS-1:0] i_mantissa,
  input [3:0] i_exponent,
  input [31:0] i_seed,
  input [NUMBER_BITS-1:0] i_number,
  input [LANES-1:0][VALUE_BITS-1:0] o_values,
  // Registers of the quantiser, by stage and by lane
  input [4:1] inner_valid, inner_under_way,
  input [2:0] inner_number,
  input [3:1] inner_signed, inner_random, inner_nearest,
  input [3:1][1:0] inner_bits,
  input [3:1][4*WORD_BITS-1:0] inner_state,
  input [16:0] inner_inverse1,
  input [2:1][4:0] inner_shift,
  input [LANES-1:0][BASE_BITS-1:0] inner_distance,
  input [LANES-1:0][31:0] inner_product,
  input [LANES-1:0][24:0] inner_quotient
);
  wire advance = ~o__valid | o__ready;
  reg [4:1] full = 0;
  always @(posedge clk)
    if (rst) full <= 0;
    else if (advance) full <= {full[3:1], i__valid};

  // Settings of the row that enters
  wire affine, found, centred;
  wire [7:0] most_code;
  wire signed [39:0] wide_low, middle_low, fixed_low;
  affine_settings #(
    .BASE_BITS(BASE_BITS), .MANTISSA_BITS(MANTISSA_BITS), .MAX_EXPONENT(MAX_EXPONENT),
    .MODES(MODES), .AFFINE_MODES(AFFINE_MODES), .DIVISION(DIVISION), .ACTNN(ACTNN)
  ) settings (
    .mode(i_mode), .bits_log2(i_bits_log2), .step_log2(i_step_log2), .block_range(i_block_range),
    .low(i_low), .mantissa(i_mantissa), .exponent(i_exponent), .*
  );
  wire [FRACTION_BITS:0] reciprocal;
  wire [5:0] right;
  reciprocal_of_step #(
    .MANTISSA_BITS(MANTISSA_BITS), .RECIPROCAL_SHIFT(RECIPROCAL_SHIFT), .FRACTION_BITS(FRACTION_BITS)
  ) step (.mantissa(i_mantissa), .exponent(i_exponent), .*);
  wire signed [39:0] low = found ? wide_low : centred ? middle_low : fixed_low;
  wire rounds = affine && i_mode != BLPA;

  // Settings of the rows in the stages
  wire [4:0][1:0] bits_log2;
  wire [4:0] is_affine, in_signed;
  wire [3:0] draws, nearest;
  wire [2:0][4:0] shift;
  wire [1:0][16:0] inverse;
  pipeline #(.WIDTH(2), .STAGES(4)) bits_of (.value(i_bits_log2), .at(bits_log2), .*);
  pipeline #(.WIDTH(1), .STAGES(4)) affine_of (.value(affine), .at(is_affine), .*);
  pipeline #(.WIDTH(1), .STAGES(4)) signed_of (.value(i_mode == AUTOQUANTZ), .at(in_signed), .*);
  pipeline #(.WIDTH(1), .STAGES(3)) draws_of (.value(rounds && i_stochastic), .at(draws), .*);
  pipeline #(.WIDTH(1), .STAGES(3)) nearest_of (.value(rounds && !i_stochastic), .at(nearest), .*);
  pipeline #(.WIDTH(5), .STAGES(2)) shift_of (.value(found ? right[4:0] : affine ? {1'b0, i_step_log2} : 5'd0), .at(shift), .*);
  pipeline #(.WIDTH(17), .STAGES(1)) inverse_of (.value(found ? reciprocal : 17'd65536), .at(inverse), .*);

  // Random numbers: rows of a block are counted
  reg [2:0] row;
  always @(posedge clk) row <= rst ? 0 : ~(i__valid & i__ready) ? row : i_ends ? 0 : row + 1;
  wire [3:0][4*WORD_BITS-1:0] state;
  wire [LANES-1:0][WORD_BITS-1:0] drawn;
  random_numbers #(
    .LANES(LANES), .WORD_BITS(WORD_BITS), .ROUNDS(ROUNDS), .CONSTANTS(CONSTANTS), .SBOX(SBOX), .ROTATIONS(ROTATIONS),
    .SECOND_ROTATION(SECOND_ROTATION)
  ) numbers (.counted({i_seed, 29'(i_number), row}), .*);

  wire [3:1] settings_hold, state_holds;
  generate
    for (genvar s = 1; s <= 3; s++) begin : stage
      assign settings_hold[s] = inner_signed[s] == in_signed[s] && inner_random[s] == draws[s] && inner_nearest[s] == nearest[s]
        && inner_bits[s] == (is_affine[s] ? bits_log2[s] : 2'd3)
        && (is_affine[s] || ~(in_signed[s] | draws[s] | nearest[s])) && ~(draws[s] & nearest[s]);
      assign state_holds[s] = inner_state[s] == state[s];
    end
  endgenerate
  always @* if (started) begin
    same: assert (inner_valid == full && inner_under_way == full && inner_number == row);
    settings_held: assert (&(settings_hold | ~full[3:1]));
    state_held: assert (&(state_holds | ~full[3:1]));
    if (full[1]) step1: assert (inner_inverse1 == inverse[1] && inner_shift[1] == shift[1]
      && (inverse[1][16] == 0 || inverse[1][15:0] == 0));
    if (full[2]) step2: assert (inner_shift[2] == shift[2]);
  end

  generate
    for (genvar n = 0; n < LANES; n++) begin : lane
      if (CHECKED[n]) begin : checked
        affine_quantizer_lane #(.BASE_BITS(BASE_BITS), .VALUE_BITS(VALUE_BITS)) rules (
          .affine(is_affine), .in_signed(in_signed[3]), .inverse(inverse[1]), .shift(shift[2:1]),
          .rho(draws[3] ? drawn[n] : nearest[3] ? 16'd32768 : 16'd0),
          .value(i_values[n]), .code(o_values[n]), .inner_inverse(inner_inverse1), .inner_shift(inner_shift[2]),
          .inner_distance(inner_distance[n]), .inner_product(inner_product[n]), .inner_quotient(inner_quotient[n]), .*
        );
      end
    end
  endgenerate
endmodule
