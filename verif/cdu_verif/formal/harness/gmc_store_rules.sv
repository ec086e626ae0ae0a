// A block leaves as its head and its body: of one of the first after reset one bit, at any place, and the length are followed.
//
// A block is written with 8 bits for the head, 4 for the category of DC, and what follows. What lies behind its last nibble
// that is not zero is left out. Up to 24 bytes the head takes the category, and everything behind it moves up; longer bodies
// keep it.
module gmc_store_rules #(
  parameter bit LENGTHS,  // which are proven, or the bits
  parameter int SLOT_BITS,
  parameter int SLICE_BYTES,
  parameter int MOST_BYTES  // of a block
) (
  input clk, rst, started,
  input i__valid, i__ready, o__valid, o__ready,
  input [SLOT_BITS-1:0] i_data,
  input i_ends,
  input [3:0] i_category,
  input [4:0] i_tag,
  input [8*SLICE_BYTES-1:0] o_data,
  input o_ends,
  input [$clog2(SLICE_BYTES+1)-1:0] o_count,
  input [4:0] o_tag
);
  localparam int NIBBLES = SLOT_BITS / 4;

  (* anyconst *) wire [2:0] chosen;    // block
  (* anyconst *) wire [9:0] followed;  // bit, as it is written
  always @* assume (followed >= 12 && chosen < 3);
  wire takes = i__valid & i__ready, leaves = o__valid & o__ready;

  // Input: the bits of slots, the category among the first
  reg [3:0] blocks_in;
  reg [9:0] begin_in, last_in;  // first bit of the slot; nibble that is not zero, of the slots before
  reg is, known;
  reg [7:0] last;
  reg [3:0] category;
  reg [4:0] tag;
  reg [7:0] last_now;
  integer n;
  always @* begin
    last_now = begin_in == 0 ? 2 : last_in;
    for (n = 0; n < NIBBLES; n = n + 1) if (i_data[4*n +: 4] != 0) last_now = begin_in / 4 + n;
  end
  wire [9:0] place_in = followed - begin_in;
  always @(posedge clk) begin
    if (takes) begin
      begin_in <= i_ends ? 0 : begin_in + SLOT_BITS;
      last_in <= last_now;
      blocks_in <= blocks_in + i_ends;
      if (blocks_in == chosen) begin
        if (begin_in == 0) is <= 0;
        if (followed >= begin_in && place_in < SLOT_BITS) is <= i_data >> place_in;
        if (i_ends) {known, last, category, tag} <= {1'b1, last_now, i_category, i_tag};
      end
    end
    if (rst) {blocks_in, begin_in, known} <= 0;
  end
  reg [2:0] since_end;  // cycles; there are as many columns in a block, less one (gmc_slots_rules.sv)
  always @(posedge clk) since_end <= rst ? 7 : takes & i_ends ? 1 : since_end == 7 ? 7 : since_end + 1;
  always @* if (i__valid & i_ends) assume (since_end == 7);
  reg [3:0] category_in;  // of the block that is written
  always @(posedge clk) if (takes & begin_in == 0) category_in <= i_data[11:8];
  always @* if (i__valid) begin
    assume (i_category <= 8 && i_category == (begin_in == 0 ? i_data[11:8] : category_in));
    if (begin_in == 0) assume (i_data[7:0] == 0);
    assume (last_now < 2 * MOST_BYTES && begin_in < 8 * MOST_BYTES);
  end

  // Block as the format codes it
  wire [7:0] short_body = (last - 1) >> 1, long_body = last >> 1;  // bytes that reach to the last nibble
  wire is_short = short_body <= 24 && ~category[3];
  wire [7:0] body = is_short ? short_body : long_body > 25 ? long_body : 25;
  wire [7:0] head = is_short ? {body[4:0], category[2:0]} : 200 + body - 25;
  wire [9:0] place_out = is_short ? followed - 4 : followed;

  // Output
  reg [3:0] blocks_out;
  reg [9:0] begin_out;  // first byte of the slice
  wire [9:0] in_slice = place_out - 8 * begin_out;
  wire bit_out = o_data >> in_slice;
  always @(posedge clk) begin
    if (leaves) begin
      begin_out <= o_ends ? 0 : begin_out + SLICE_BYTES;
      blocks_out <= blocks_out + o_ends;
    end
    if (rst) {blocks_out, begin_out} <= 0;
  end
  always @* if (started & o__valid) begin
    after: assert (blocks_out < blocks_in);
    if (blocks_out == chosen) begin
      all_there: assert (known);
      if (LENGTHS) begin
        bytes: assert (o_ends ? begin_out + o_count == 1 + body : o_count == SLICE_BYTES && begin_out + SLICE_BYTES < 1 + body);
        if (begin_out == 0) heads: assert (o_data[7:0] == head);
        notes: assert (o_tag == tag);
      end else if (place_out >= 8 * begin_out && in_slice < 8 * SLICE_BYTES) bits: assert (bit_out == is);
    end
  end
endmodule
