// A column of a block: masks and classes are those that the tables read from its bits, for all bits and classes before.
//
// Each row of the tables has one code word, and no second one, with which any bits begin.
module gmc_column_rules #(
  parameter int PREFIX_BITS,  // before the fields of a column
  parameter int COLUMN_BITS,
  parameter int A_SIZE,  // bits of the longest words of the tables
  parameter int B_SIZE,
  parameter int MASK_SIZE,
  parameter [7*9*A_SIZE-1:0] A_WORDS,
  parameter [7*9*4-1:0] A_LENGTHS,
  parameter [7*8*B_SIZE-1:0] B_WORDS,
  parameter [7*8*4-1:0] B_LENGTHS,
  parameter [4*15*MASK_SIZE-1:0] MASK_WORDS,
  parameter [4*15*4-1:0] MASK_LENGTHS
) (
  input [PREFIX_BITS-1:0] prefix_bits,
  input [9:0] inner_present,
  input [2:0] inner_number,
  input [6:0] inner_length,
  input [34:0] inner_prefix
);
  localparam int CLASSES_BITS = A_SIZE + B_SIZE;

  wire final_column = inner_number == 7;
  wire [2:0] a = inner_present[2:0], b = inner_present[5:3];
  wire [3:0] mask_a, mask_b, mask_a_length, mask_b_length, next_length;
  wire [2:0] next_a, next_b;
  wire mask_a_complete, mask_b_complete, next_complete;
  wire [4:0] masks_length = mask_a_length + mask_b_length;
  wire [4:0] prefix = masks_length + (final_column ? 0 : next_length);
  wire [5:0] fields_a = 3'($countones(mask_a)) * (a == 7 ? 4'd8 : a), fields_b = 3'($countones(mask_b)) * (b == 7 ? 4'd8 : b);
  wire [6:0] length = prefix + fields_a + fields_b;
  wire [MASK_SIZE-1:0] bits_of_mask_b = prefix_bits >> mask_a_length;
  wire [CLASSES_BITS-1:0] bits_of_classes = prefix_bits >> masks_length;
  gmc_mask #(.SIZE(MASK_SIZE), .WORDS(MASK_WORDS), .LENGTHS(MASK_LENGTHS)) mask_of_a (
    .group_class(a), .bits(prefix_bits[MASK_SIZE-1:0]), .mask(mask_a), .length(mask_a_length), .complete(mask_a_complete)
  );
  gmc_mask #(.SIZE(MASK_SIZE), .WORDS(MASK_WORDS), .LENGTHS(MASK_LENGTHS)) mask_of_b (
    .group_class(b), .bits(bits_of_mask_b), .mask(mask_b), .length(mask_b_length), .complete(mask_b_complete)
  );
  gmc_classes #(
    .A_SIZE(A_SIZE), .B_SIZE(B_SIZE), .A_WORDS(A_WORDS), .A_LENGTHS(A_LENGTHS), .B_WORDS(B_WORDS), .B_LENGTHS(B_LENGTHS)
  ) next_classes (
    .first(1'b0), .a_before(a), .b_before(b), .bits(bits_of_classes), .a(next_a), .b(next_b), .length(next_length),
    .complete(next_complete)
  );
  gmc_column_bounds #(.KNOWN(1'b0), .PREFIX_BITS(PREFIX_BITS), .COLUMN_BITS(COLUMN_BITS)) of_column (
    .mask_a(inner_prefix[3:0]), .mask_b(inner_prefix[7:4]), .next_a(inner_prefix[10:8]), .next_b(inner_prefix[13:11]),
    .prefix(inner_prefix[22:18]), .fields_a(inner_prefix[28:23]), .fields_b(inner_prefix[34:29]), .length(inner_length), .*
  );
  always @* begin
    words: assert (mask_a_complete & mask_b_complete & next_complete);
    masks: assert (inner_prefix[7:0] == {mask_b, mask_a});
    classes: assert (inner_prefix[13:8] == (final_column ? 6'd0 : {next_b, next_a}));
    lengths: assert (inner_prefix[22:18] == prefix && inner_prefix[28:23] == fields_a && inner_prefix[34:29] == fields_b);
    whole: assert (inner_length == length);
  end
endmodule
