// One round of the random numbers: constant, substitution of every column of four bits, rotation of the words.
module random_round #(
  parameter int WORD_BITS,
  parameter int CONSTANT,           // exclusive-or with the state
  parameter [16*4-1:0] SBOX,        // substitution of a column, whose bit i is that of word i
  parameter [4*8-1:0] ROTATIONS     // of the words, to the left
) (
  input [3:0][WORD_BITS-1:0] state,
  output [3:0][WORD_BITS-1:0] next_state
);
  wire [3:0][WORD_BITS-1:0] mixed = state ^ CONSTANT, substituted;

  generate
    for (genvar place = 0; place < WORD_BITS; place++) begin : column
      wire [3:0] value = SBOX >> {mixed[3][place], mixed[2][place], mixed[1][place], mixed[0][place], 2'd0};
      for (genvar word = 0; word < 4; word++) begin : result
        assign substituted[word][place] = value[word];
      end
    end
    for (genvar word = 0; word < 4; word++) begin : rotation
      localparam int RIGHT = WORD_BITS - ROTATIONS[8*word +: 8];
      assign next_state[word] = {substituted[word], substituted[word]} >> RIGHT;
    end
  endgenerate
endmodule
