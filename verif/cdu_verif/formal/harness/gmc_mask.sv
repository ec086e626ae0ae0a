// The mask of a group, from its class and the bits that begin with it.
module gmc_mask #(
  parameter int SIZE,  // bits of the longest word
  parameter [4*15*SIZE-1:0] WORDS,
  parameter [4*15*4-1:0] LENGTHS
) (
  input [2:0] group_class,
  input [SIZE-1:0] bits,
  output [3:0] mask, length,
  output complete
);
  wire [3:0] number, word_length;
  wire [4*15-1:0] begins;
  wire coded = group_class != 0 && group_class != 7;

  gmc_word #(.ROWS(4), .WORDS(15), .SIZE(SIZE), .BITS(WORDS), .LENGTHS(LENGTHS)) word_of_mask (
    .row(group_class > 4 ? 3'd3 : group_class - 3'd1), .number(number), .length(word_length), .*
  );
  assign mask = group_class == 7 ? 15 : coded ? number + 1 : 0;
  assign length = coded ? word_length : 0;
  assign complete = ~coded | $onehot(begins);
endmodule
