// Whatever bytes come: what leaves is what the first slices of blocks, their columns and the fields in the window say.
//
// Kept beside the device: what the first slice of a block tells; which bits of the window are still to be taken; what a column
// tells, on its way out. That a column tells what the tables say is proven by itself (gmc_column_rules.sv).
module gmc_decoder_rules #(
  parameter int SLICE_BITS,
  parameter int WINDOW_BITS,
  parameter int PREFIX_BITS,  // before the fields of a column
  parameter int COLUMN_BITS,
  parameter int A_SIZE,  // bits of the longest words of the tables
  parameter int B_SIZE,
  parameter [7*9*A_SIZE-1:0] A_WORDS,
  parameter [7*9*4-1:0] A_LENGTHS,
  parameter [7*8*B_SIZE-1:0] B_WORDS,
  parameter [7*8*4-1:0] B_LENGTHS
) (
  input clk, rst, started,
  input i__valid, i__ready, o__valid, o__ready,
  input [SLICE_BITS-1:0] i_data,
  input i_ends, i_bank, i_last,
  input [7:0][7:0] o_values,
  input o_ends, o_bank, o_last,
  input [WINDOW_BITS-1:0] inner_window,
  input [$clog2(WINDOW_BITS+1)-1:0] inner_fill,
  input inner_busy, inner_more, inner_turn, inner_go, inner_first_ends,
  input [1:0] inner_phase, inner_valid,
  input [SLICE_BITS-1:0] inner_first_bits,
  input [$clog2(SLICE_BITS+1)-1:0] inner_first_fill,
  input [9:0] inner_first_classes, inner_present,
  input [3:0] inner_category,
  input [7:0] inner_dc, inner_block_dc,
  input [4:0] inner_first_tag, inner_tag,
  input [2:0] inner_number,
  input [WINDOW_BITS-1:0] inner_filled,
  input [6:0] inner_length,
  input [34:0] inner_prefix,
  input [63:0] inner_fields,
  input [COLUMN_BITS-1:0] inner_bits3,
  input [4:0] inner_before3,
  input [5:0] inner_fields_a3,
  input [31:0] inner_of_a, inner_of_b,
  input [3:0] inner_part0_3, inner_part0_4, inner_part2_3, inner_part2_4,
  input [2:0] inner_part1_3, inner_part1_4, inner_part3_3, inner_part3_4,
  input [6:0] inner_part4_3, inner_part4_4
);
  localparam int CLASSES_BITS = A_SIZE + B_SIZE;

  wire takes = i__valid & i__ready, advance = ~o__valid | o__ready;

  // The first slice of the block that comes next: what it begins with goes piece by piece
  reg unfinished;  // a block of which slices are still to come
  wire begins = takes & ~unfinished;
  reg [SLICE_BITS-1:0] rest, rest_there;
  reg [$clog2(SLICE_BITS+1)-1:0] rest_length;
  reg rest_ends;
  reg [1:0] rest_mark;
  wire [3:0] dc_at, category_told, classes_length;
  reg [3:0] category;
  wire [7:0] dc_told;
  reg [7:0] dc;
  wire [2:0] a_told, b_told;
  reg [2:0] first_a, first_b;
  wire first_complete;
  always @(posedge clk) begin
    unfinished <= rst ? 0 : takes ? ~i_ends : unfinished;
    if (begins) begin
      {rest_ends, rest_mark, category} <= {i_ends, i_last, i_bank, category_told};
      rest <= i_data >> dc_at;
      rest_there <= {SLICE_BITS{1'b1}} >> dc_at;
      rest_length <= SLICE_BITS - dc_at;
    end else if (inner_phase == 1) begin
      dc <= dc_told;
      rest <= rest >> category;
      rest_there <= rest_there >> category;
      rest_length <= rest_length - category;
    end else if (inner_phase == 2) begin
      {first_b, first_a} <= {b_told, a_told};
      rest <= rest >> classes_length;
      rest_there <= rest_there >> classes_length;
      rest_length <= rest_length - classes_length;
    end
  end
  gmc_begin begin_of_block (
    .head(i_data[11:0]), .category(category_told), .dc_category(category), .dc_bits(rest[8:0]), .dc(dc_told), .*
  );
  gmc_classes #(
    .A_SIZE(A_SIZE), .B_SIZE(B_SIZE), .A_WORDS(A_WORDS), .A_LENGTHS(A_LENGTHS), .B_WORDS(B_WORDS), .B_LENGTHS(B_LENGTHS)
  ) first_classes (
    .first(1'b1), .a_before(3'd0), .b_before(3'd0), .bits(rest[CLASSES_BITS-1:0]), .a(a_told), .b(b_told),
    .length(classes_length), .complete(first_complete)
  );
  always @* if (started) begin
    whose: assert (unfinished == (inner_more | (inner_phase != 0 & ~rest_ends)));
    one_block: assert (inner_phase == 0 | ~inner_more);
    if (inner_phase != 0) begin
      first_slice: assert (inner_first_bits == rest && inner_first_fill == rest_length);
      first_zeros: assert ((rest & ~rest_there) == 0 && rest_there == ~({SLICE_BITS{1'b1}} << rest_length));
      first_notes: assert (inner_first_ends == rest_ends && inner_first_tag[1:0] == rest_mark);
      first_bounds: assert (rest_length >= SLICE_BITS - (inner_phase == 1 ? 12 : inner_phase == 2 ? 20 : 20 + CLASSES_BITS)
        && rest_length < SLICE_BITS && category <= 8);
      if (inner_phase == 1) first_category: assert (inner_category == category);
      else first_dc: assert (inner_dc == dc);
      if (inner_phase == 3) first_classes_told: assert (inner_first_classes[5:0] == {first_b, first_a});
      first_words: assert (first_complete & classes_length <= CLASSES_BITS);
    end
  end

  // The block in the window: the bits of it that are there, and those of the next column
  reg [7:0] block_dc;
  reg [1:0] block_mark;
  reg [2:0] told_a, told_b, column;
  reg busy;
  reg [WINDOW_BITS-1:0] there;
  wire joins = inner_busy & inner_more & takes;
  wire final_column = inner_number == 7;
  wire [WINDOW_BITS-1:0] slice_there, there_left, all_there = there | slice_there;
  staged_shift #(.WIDTH(WINDOW_BITS), .STAGES(8), .UP(1'b1)) marks_of_slice (
    .bits(joins ? WINDOW_BITS'({SLICE_BITS{1'b1}}) : 0), .places(inner_fill), .moved(slice_there)
  );
  staged_shift #(.WIDTH(WINDOW_BITS), .STAGES(7), .UP(1'b0)) take_marks (
    .bits(all_there), .places(inner_length), .moved(there_left)
  );
  wire [8:0] bits_end = inner_fill + (joins ? SLICE_BITS : 0);
  wire [2:0] a = inner_present[2:0], b = inner_present[5:3], next_a = inner_prefix[10:8], next_b = inner_prefix[13:11];
  wire [3:0] mask_a = inner_prefix[3:0], mask_b = inner_prefix[7:4];
  wire [4:0] prefix = inner_prefix[22:18];
  wire [5:0] fields_a = inner_prefix[28:23], fields_b = inner_prefix[34:29];
  wire [6:0] length = inner_length;
  gmc_column_bounds #(.KNOWN(1'b1), .PREFIX_BITS(PREFIX_BITS), .COLUMN_BITS(COLUMN_BITS)) of_column (.*);
  always @(posedge clk) begin
    if (inner_go) begin
      there <= there_left;
      {told_b, told_a} <= {next_b, next_a};
      column <= column + 1;
    end
    if (inner_turn) begin
      there <= rest_there;
      {block_dc, block_mark, told_b, told_a} <= {dc, rest_mark, first_b, first_a};
      column <= 0;
    end
    busy <= rst ? 0 : inner_turn | (busy & ~(inner_go & final_column));
  end
  always @* if (started) begin
    in_turn: assert (inner_busy == busy && (~inner_turn | (inner_phase == 3 & (~busy | (inner_go & final_column)))));
    counted: assert (inner_number == (busy ? column : 0));
    columns: assert (~inner_go | (busy & advance));
    joined: assert (joins == (busy & takes & ~begins));
    if (busy) begin
      notes: assert ({b, a} == {told_b, told_a} && inner_block_dc == block_dc && inner_tag[1:0] == block_mark);
      if (inner_more) begin
        side_by_side: assert (there == ~({WINDOW_BITS{1'b1}} << inner_fill));
        enough: assert (inner_fill >= PREFIX_BITS && inner_fill <= WINDOW_BITS);
      end
    end
    if (joins) begin
      none_over_another: assert ((there & slice_there) == 0);
      room: assert (bits_end <= WINDOW_BITS && inner_go);
    end
    if (inner_go) begin
      at_once: assert (inner_window[PREFIX_BITS-1:0] == inner_filled[PREFIX_BITS-1:0]);
      if (inner_more & ~(joins & i_ends)) whole: assert (length <= bits_end);
    end
  end

  // The column on its way out
  reg [1:0] valid;
  reg [COLUMN_BITS-1:0] bits3;
  reg [31:0] of_a4, of_b4;
  reg [3:0] mask_a3, mask_a4, mask_b3, mask_b4;
  reg [2:0] a3, a4, b3, b4;
  reg [4:0] prefix3;
  reg [5:0] fields_a3;
  wire [63:0] fields3 = bits3 >> prefix3;
  reg [7:0] dc3, dc4;
  reg first3, first4, ends3, ends4;
  reg [1:0] mark3, mark4;
  always @(posedge clk) begin
    if (advance) begin
      {bits3, mask_a3, mask_b3, a3, b3} <= {inner_filled[COLUMN_BITS-1:0], mask_a, mask_b, a, b};
      {prefix3, fields_a3, first3, ends3, mark3, dc3} <= {prefix, fields_a, column == 0, final_column, block_mark, block_dc};
      {mask_a4, mask_b4, a4, b4, first4, ends4, mark4, dc4} <= {mask_a3, mask_b3, a3, b3, first3, ends3, mark3, dc3};
      of_a4 <= fields3;
      of_b4 <= inner_fields >> fields_a3;
    end
    valid <= rst ? 0 : advance ? {valid[0], inner_go} : valid;
  end
  always @* if (started) begin
    valids: assert (inner_valid == valid);
    if (valid[0]) begin
      classes3: assert ((mask_a3 == 0) == (a3 == 0) && (mask_b3 == 0) == (b3 == 0)
        && (a3 != 7 || mask_a3 == 15) && (b3 != 7 || mask_b3 == 15));
      masks3: assert (inner_part0_3 == mask_a3 && inner_part1_3 == a3 && inner_part2_3 == mask_b3 && inner_part3_3 == b3);
      sizes3: assert (prefix3 <= PREFIX_BITS && fields_a3 <= 32);
      fields: assert (inner_fields == fields3);
      places3: assert (inner_bits3 == bits3 && inner_before3 == prefix3 && inner_fields_a3 == fields_a3);
      notes3: assert (inner_part4_3[3:0] == {mark3, ends3, first3});
      if (first3) dc_stays3: assert (busy && column == 1 && block_dc == dc3);
    end
    if (valid[1]) begin
      classes4: assert ((mask_a4 == 0) == (a4 == 0) && (mask_b4 == 0) == (b4 == 0)
        && (a4 != 7 || mask_a4 == 15) && (b4 != 7 || mask_b4 == 15));
      masks4: assert (inner_part0_4 == mask_a4 && inner_part1_4 == a4 && inner_part2_4 == mask_b4 && inner_part3_4 == b4);
      bits_a4: assert (inner_of_a == of_a4);
      bits_b4: assert (inner_of_b == of_b4);
      notes4: assert (inner_part4_4[3:0] == {mark4, ends4, first4});
      if (first4) dc_stays4: assert (busy && column == 1 + valid[0] && block_dc == dc4);
    end
  end

  // Values at the output
  wire [3:0][7:0] values_a, values_b;
  wire [5:0] length_a, length_b;
  reg [7:0][7:0] expected;
  reg expected_ends;
  reg [1:0] expected_mark;
  gmc_fields of_a (.group_class(a4), .mask(mask_a4), .bits(of_a4), .values(values_a), .length(length_a));
  gmc_fields of_b (.group_class(b4), .mask(mask_b4), .bits(of_b4), .values(values_b), .length(length_b));
  always @(posedge clk) if (advance) begin
    expected <= {values_b, values_a[3:1], first4 ? dc4 : values_a[0]};
    {expected_ends, expected_mark} <= {ends4, mark4};
  end
  always @* if (started & o__valid) begin
    values: assert (o_values == expected);
    ends: assert (o_ends == expected_ends && {o_last, o_bank} == expected_mark);
  end
endmodule
