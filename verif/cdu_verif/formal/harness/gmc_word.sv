// The code word of one row of a table with which some bits begin; complete rows always have one.
module gmc_word #(
  parameter int ROWS,
  parameter int WORDS,  // of a row
  parameter int SIZE,   // bits of the longest word
  parameter [ROWS*WORDS*SIZE-1:0] BITS,  // by row and number, the first bit lowest
  parameter [ROWS*WORDS*4-1:0] LENGTHS
) (
  input [2:0] row,
  input [SIZE-1:0] bits,
  output [3:0] number, length,
  output [ROWS*WORDS-1:0] begins  // which words of the row they begin with
);
  wire [ROWS*WORDS:0][3:0] numbers, lengths;

  assign numbers[0] = 0;
  assign lengths[0] = 0;
  generate
    for (genvar place = 0; place < ROWS * WORDS; place++) begin : word
      localparam int OWN = LENGTHS[4*place +: 4];
      assign begins[place] = row == place / WORDS && bits[OWN-1:0] == BITS[SIZE*place +: OWN];
      assign numbers[place+1] = numbers[place] | (begins[place] ? place % WORDS : 0);
      assign lengths[place+1] = lengths[place] | (begins[place] ? OWN : 0);
    end
  endgenerate
  assign number = numbers[ROWS*WORDS];
  assign length = lengths[ROWS*WORDS];
endmodule
