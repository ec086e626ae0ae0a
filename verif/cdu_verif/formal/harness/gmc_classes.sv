// The classes of both groups of a column, from the bits that tell them.
module gmc_classes #(
  parameter int A_SIZE,  // bits of the longest word
  parameter int B_SIZE,
  parameter [7*9*A_SIZE-1:0] A_WORDS,
  parameter [7*9*4-1:0] A_LENGTHS,
  parameter [7*8*B_SIZE-1:0] B_WORDS,
  parameter [7*8*4-1:0] B_LENGTHS
) (
  input first,                  // column of its block
  input [2:0] a_before, b_before,  // classes of the column before
  input [A_SIZE+B_SIZE-1:0] bits,
  output [2:0] a, b,
  output [3:0] length,
  output complete               // each row that is looked at has one word with which the bits begin
);
  wire [3:0] symbol, a_length, b_number, b_length;
  wire [7*9-1:0] a_begins;
  wire [7*8-1:0] b_begins;
  wire [2:0] a_row = first ? 6 : a_before == 0 && b_before != 0 ? 5 : a_before > 4 ? 4 : a_before;
  wire [2:0] b_row = symbol == 1 ? 6 : first ? 5 : b_before > 4 ? 4 : b_before;
  wire [B_SIZE-1:0] behind = bits >> a_length;

  gmc_word #(.ROWS(7), .WORDS(9), .SIZE(A_SIZE), .BITS(A_WORDS), .LENGTHS(A_LENGTHS)) word_of_a (
    .row(a_row), .bits(bits[A_SIZE-1:0]), .number(symbol), .length(a_length), .begins(a_begins)
  );
  gmc_word #(.ROWS(7), .WORDS(8), .SIZE(B_SIZE), .BITS(B_WORDS), .LENGTHS(B_LENGTHS)) word_of_b (
    .row(b_row), .bits(behind), .number(b_number), .length(b_length), .begins(b_begins)
  );
  assign a = symbol > 1 ? symbol - 1 : 0;
  assign b = symbol == 0 ? 0 : b_number;
  assign length = a_length + (symbol == 0 ? 0 : b_length);
  assign complete = $onehot(a_begins) & $onehot(b_begins);
endmodule
