// Every column of a block is coded so that the tables read it back from its bits, whatever the coefficients.
//
// Kept beside the device: the columns in its stages. A column's bits are both masks, the classes of the column behind it, and
// the fields; those of a block's first column have DC and its classes before them. The lemmas, in turn: 0, columns stay in
// order and none is lost; 1, classes and fields; 2, the words of masks; 3, the fields side by side; 4, what a block begins
// with; of the whole column 5, the masks; 6, the classes of the next one; 7, the place of the fields and the end; 8, what they
// hold.
module gmc_encoder_rules #(
  parameter int PROVEN,
  parameter int COLUMN_BITS,
  parameter int BEGIN_BITS,
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
  input clk, rst, started,
  input i__valid, i__ready,
  input [7:0][7:0] i_values,
  input i_ends,
  input inner_moves0, inner_moves1, inner_moves2,
  input [2:0] inner_valid, inner_first, inner_ends, inner_number,
  input [8:0] inner_dc,
  input [2:0] inner_a_class1, inner_b_class1, inner_a_before, inner_b_before,
  input [3:0] inner_a_mask1, inner_b_mask1,
  input [3:0][7:0] inner_a_fields1, inner_b_fields1,
  input [2*MASK_SIZE+4-1:0] inner_masks2,
  input [64+7-1:0] inner_fields2,
  input [BEGIN_BITS+5-1:0] inner_begin2,
  input [3:0] inner_category2,
  input [COLUMN_BITS+7-1:0] inner_column3
);
  localparam int CLASSES_BITS = A_SIZE + B_SIZE;

  // Columns of a block are eight, and the last one says so
  reg [2:0] number;
  wire takes = i__valid & i__ready, leaves = inner_valid[2] & inner_moves2;
  always @(posedge clk) number <= rst ? 0 : number + takes;
  always @* if (i__valid) assume (i_ends == (number == 7));

  // The columns in the stages, with what follows in the one that leaves
  reg [7:0][7:0] values1, values2, values3;
  reg [2:0] number1, number2, number3, next_a, next_b, left;
  wire [3:1][2:0] a, b;
  wire [3:1][3:0] mask_a, mask_b;
  wire [3:1][3:0][7:0] fields_a, fields_b;
  wire [3:1][7:0][7:0] coefficients;  // with DC taken apart
  assign coefficients[1] = number1 == 0 ? values1 & ~64'd255 : values1;
  assign coefficients[2] = number2 == 0 ? values2 & ~64'd255 : values2;
  assign coefficients[3] = number3 == 0 ? values3 & ~64'd255 : values3;
  generate
    for (genvar stage = 1; stage < 4; stage++) begin : column
      gmc_group of_a (
        .values(coefficients[stage][3:0]), .group_class(a[stage]), .mask(mask_a[stage]), .fields(fields_a[stage])
      );
      gmc_group of_b (
        .values(coefficients[stage][7:4]), .group_class(b[stage]), .mask(mask_b[stage]), .fields(fields_b[stage])
      );
    end
  endgenerate
  always @(posedge clk) begin
    if (inner_moves0) {values1, number1} <= {i_values, number};
    if (inner_moves1) {values2, number2} <= {values1, number1};
    if (inner_moves2) {values3, number3, next_a, next_b} <= {values2, number2, a[1], b[1]};
    left <= rst ? 0 : left + leaves;
  end
  wire in_order = i__ready == inner_moves0 && inner_number == number && (inner_valid[2] ? number3 == left
      : inner_valid[1] ? number2 == left : inner_valid[0] ? number1 == left : left == 0)
    && (inner_valid[0] ? number == 3'(number1 + 1) && (inner_valid[1] ? number1 == 3'(number2 + 1) : number1 == 0)
      : number == (inner_valid[1] ? 3'(number2 + 1) : 0))
    && (~inner_valid[2] || (inner_valid[1] ? number2 == 3'(number3 + 1) : number3 == 7))
    && (~inner_valid[0] || (inner_first[0] == (number1 == 0) && inner_ends[0] == (number1 == 7)))
    && (~inner_valid[1] || (inner_first[1] == (number2 == 0) && inner_ends[1] == (number2 == 7)))
    && (~inner_valid[2] || (inner_first[2] == (number3 == 0) && inner_ends[2] == (number3 == 7)))
    && (~inner_valid[2] || number3 == 7 || {next_b, next_a} == {b[2], a[2]});
  lemma #(0, PROVEN) order (~started | in_order);

  // 1: classes and fields
  wire [3:0][7:0] asked_a, asked_b;
  generate
    for (genvar n = 0; n < 4; n++) begin : field
      assign asked_a[n] = mask_a[1][n] ? 255 : 0;
      assign asked_b[n] = mask_b[1][n] ? 255 : 0;
    end
  endgenerate
  wire classified = inner_a_class1 == a[1] && inner_b_class1 == b[1] && inner_a_mask1 == mask_a[1] && inner_b_mask1 == mask_b[1]
    && ((inner_a_fields1 ^ fields_a[1]) & asked_a) == 0 && ((inner_b_fields1 ^ fields_b[1]) & asked_b) == 0
    && (number1 != 0 || (inner_dc[0] == values1[0][7] && inner_dc[8:1] == (inner_dc[0] ? -values1[0] : values1[0])));
  lemma #(1, PROVEN) groups (~started | ~inner_valid[0] | classified);

  // 2: both masks; both groups' fields
  wire [2*MASK_SIZE-1:0] masks2 = inner_masks2[2*MASK_SIZE-1:0];
  wire [3:0] masks_length2 = inner_masks2[2*MASK_SIZE +: 4], mask_a_length2, mask_b_length2, told_mask_a2, told_mask_b2;
  wire mask_a_complete2, mask_b_complete2;
  wire [MASK_SIZE-1:0] bits_of_mask_b2 = masks2 >> mask_a_length2;
  gmc_mask #(.SIZE(MASK_SIZE), .WORDS(MASK_WORDS), .LENGTHS(MASK_LENGTHS)) mask_of_a2 (
    .group_class(a[2]), .bits(masks2[MASK_SIZE-1:0]), .mask(told_mask_a2), .length(mask_a_length2), .complete(mask_a_complete2)
  );
  gmc_mask #(.SIZE(MASK_SIZE), .WORDS(MASK_WORDS), .LENGTHS(MASK_LENGTHS)) mask_of_b2 (
    .group_class(b[2]), .bits(bits_of_mask_b2), .mask(told_mask_b2), .length(mask_b_length2), .complete(mask_b_complete2)
  );
  wire [63:0] fields2 = inner_fields2[63:0];
  wire [6:0] fields_length2 = inner_fields2[64 +: 7];
  wire [31:0] bits_of_b2 = fields2 >> fields_a_length2;
  wire [5:0] fields_a_length2, fields_b_length2;
  wire [3:0][7:0] told_a2, told_b2;
  gmc_fields fields_of_a2 (
    .group_class(a[2]), .mask(mask_a[2]), .bits(fields2[31:0]), .values(told_a2), .length(fields_a_length2)
  );
  gmc_fields fields_of_b2 (
    .group_class(b[2]), .mask(mask_b[2]), .bits(bits_of_b2), .values(told_b2), .length(fields_b_length2)
  );
  wire masked = told_mask_a2 == mask_a[2] && told_mask_b2 == mask_b[2] && masks_length2 == mask_a_length2 + mask_b_length2
    && masks2 >> masks_length2 == 0 && inner_a_before == a[2] && inner_b_before == b[2];
  wire sided = {told_b2, told_a2} == coefficients[2] && fields_length2 == fields_a_length2 + fields_b_length2
    && fields2 >> fields_length2 == 0;
  lemma #(2, PROVEN) words_of_masks (~started | ~inner_valid[1] | masked);
  lemma #(3, PROVEN) fields_side_by_side (~started | ~inner_valid[1] | sided);

  // The beginning of a block stays until its first column leaves
  wire begun2 = inner_valid[1] & number2 == 0, begun3 = inner_valid[2] & number3 == 0;
  wire [BEGIN_BITS-1:0] begin_bits = inner_begin2[BEGIN_BITS-1:0];
  wire [4:0] begin_length = inner_begin2[BEGIN_BITS +: 5];
  wire [CLASSES_BITS-1:0] bits_of_first = begin_bits >> inner_category2;
  wire [7:0] dc_told;
  wire [2:0] first_a, first_b;
  wire [3:0] first_length;
  gmc_begin begin_of_block (
    .head(12'd0), .dc_at(), .category(), .dc_category(inner_category2), .dc_bits(begin_bits[8:0]), .dc(dc_told)
  );
  gmc_classes #(
    .A_SIZE(A_SIZE), .B_SIZE(B_SIZE), .A_WORDS(A_WORDS), .A_LENGTHS(A_LENGTHS), .B_WORDS(B_WORDS), .B_LENGTHS(B_LENGTHS)
  ) first_classes (
    .first(1'b1), .a_before(3'd0), .b_before(3'd0), .bits(bits_of_first), .a(first_a), .b(first_b), .length(first_length),
    .complete()
  );
  wire begun = dc_told == (begun2 ? values2[0] : values3[0]) && {first_b, first_a} == (begun2 ? {b[2], a[2]} : {b[3], a[3]})
    && begin_length == inner_category2 + first_length && begin_bits >> begin_length == 0 && inner_category2 <= 8;
  lemma #(4, PROVEN) begin_of_a_block (~started | ~(begun2 | begun3) | begun);

  // 3: the column, whole
  wire [COLUMN_BITS-1:0] bits3 = inner_column3[COLUMN_BITS-1:0];
  wire [6:0] length3 = inner_column3[COLUMN_BITS +: 7];
  wire [3:0] told_mask_a3, told_mask_b3, mask_a_length3, mask_b_length3, next_length3;
  wire [2:0] told_next_a, told_next_b;
  wire [4:0] masks_length3 = mask_a_length3 + mask_b_length3, prefix3 = masks_length3 + (number3 == 7 ? 0 : next_length3);
  wire [MASK_SIZE-1:0] bits_of_mask_b3 = bits3 >> mask_a_length3;
  wire [CLASSES_BITS-1:0] bits_of_next = bits3 >> masks_length3;
  gmc_mask #(.SIZE(MASK_SIZE), .WORDS(MASK_WORDS), .LENGTHS(MASK_LENGTHS)) mask_of_a3 (
    .group_class(a[3]), .bits(bits3[MASK_SIZE-1:0]), .mask(told_mask_a3), .length(mask_a_length3), .complete()
  );
  gmc_mask #(.SIZE(MASK_SIZE), .WORDS(MASK_WORDS), .LENGTHS(MASK_LENGTHS)) mask_of_b3 (
    .group_class(b[3]), .bits(bits_of_mask_b3), .mask(told_mask_b3), .length(mask_b_length3), .complete()
  );
  gmc_classes #(
    .A_SIZE(A_SIZE), .B_SIZE(B_SIZE), .A_WORDS(A_WORDS), .A_LENGTHS(A_LENGTHS), .B_WORDS(B_WORDS), .B_LENGTHS(B_LENGTHS)
  ) next_classes (
    .first(1'b0), .a_before(a[3]), .b_before(b[3]), .bits(bits_of_next), .a(told_next_a), .b(told_next_b),
    .length(next_length3), .complete()
  );
  reg [63:0] moved;
  reg [6:0] moved_length;
  always @(posedge clk) if (inner_moves2) {moved_length, moved} <= inner_fields2;
  wire [5:0] fields_a_length3, fields_b_length3;
  wire [3:0][7:0] told_a3, told_b3;
  wire [63:0] fields3 = bits3 >> prefix3;
  wire [31:0] bits_of_b3 = fields3 >> fields_a_length3;
  gmc_fields fields_of_a3 (
    .group_class(a[3]), .mask(mask_a[3]), .bits(fields3[31:0]), .values(told_a3), .length(fields_a_length3)
  );
  gmc_fields fields_of_b3 (
    .group_class(b[3]), .mask(mask_b[3]), .bits(bits_of_b3), .values(told_b3), .length(fields_b_length3)
  );
  wire in_stage3 = started & inner_valid[2];
  lemma #(5, PROVEN) masks (~in_stage3 | (told_mask_a3 == mask_a[3] && told_mask_b3 == mask_b[3]));
  lemma #(6, PROVEN) next_column (~in_stage3 | number3 == 7 | {told_next_b, told_next_a} == {next_b, next_a});
  lemma #(7, PROVEN) fields_behind (
    ~in_stage3 | (fields3 == moved && length3 == prefix3 + moved_length && bits3 >> length3 == 0)
  );
  lemma #(8, PROVEN) values (
    ~in_stage3 | ({told_b3, told_a3} == coefficients[3] && moved_length == fields_a_length3 + fields_b_length3)
  );
endmodule
