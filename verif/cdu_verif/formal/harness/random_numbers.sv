// The random numbers of a row: rounds on its counter and the seed, in three stages of a pipeline, and a number for each lane.
//
// Lanes 0 to 3 take the words of the state; lane 4 + i takes word i rotated, mixed with the word behind it.
module random_numbers #(
  parameter int LANES,
  parameter int WORD_BITS,
  parameter int ROUNDS,
  parameter [8*ROUNDS-1:0] CONSTANTS,
  parameter [16*4-1:0] SBOX,
  parameter [4*8-1:0] ROTATIONS,
  parameter int SECOND_ROTATION
) (
  input clk, advance,
  input [4*WORD_BITS-1:0] counted,          // seed and counter of the row that enters
  output [3:0][4*WORD_BITS-1:0] state,      // after so many stages
  output [LANES-1:0][WORD_BITS-1:0] drawn   // from the state after the last one
);
  wire [ROUNDS-1:0][4*WORD_BITS-1:0] before_round, after_round;
  wire [3:0][WORD_BITS-1:0] words = state[3];

  assign state[0] = counted;
  generate
    for (genvar s = 0; s < 3; s++) begin : stage
      localparam int FIRST = ROUNDS * s / 3, END = ROUNDS * (s + 1) / 3;
      for (genvar n = FIRST; n < END; n++) begin : round
        if (n == FIRST) begin : first
          assign before_round[n] = state[s];
        end else begin : later
          assign before_round[n] = after_round[n-1];
        end
        random_round #(
          .WORD_BITS(WORD_BITS), .CONSTANT(CONSTANTS[8*n +: 8]), .SBOX(SBOX), .ROTATIONS(ROTATIONS)
        ) one (.state(before_round[n]), .next_state(after_round[n]));
      end
      reg [4*WORD_BITS-1:0] held;
      always @(posedge clk) if (advance) held <= after_round[END-1];
      assign state[s+1] = held;
    end
    for (genvar lane = 0; lane < LANES; lane++) begin : draw
      localparam int WORD = lane % 4, BEHIND = (lane + 1) % 4;
      wire [WORD_BITS-1:0] rotated = {words[WORD], words[WORD]} >> (WORD_BITS - SECOND_ROTATION);
      assign drawn[lane] = lane < 4 ? words[WORD] : rotated ^ words[BEHIND];
    end
  endgenerate
endmodule
