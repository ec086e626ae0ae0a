// Bytes of the slices of the lane whose turn it is leave without gaps; a job ends with its last byte and no other.
//
// The end of a byte's job and one bit of the byte are followed. Helper invariants tell the byte's place: behind the word at the
// output come bytes of the next one, behind these the slice in the ring.
module collector_order #(
  parameter int LANES,
  parameter int SLICE_BYTES,
  parameter int WORD_BYTES,
  parameter int RING_BYTES  // a power of two
) (
  input clk, rst, started,
  // Ports of the lanes
  input [LANES-1:0] i_valid, i_ready, i_ends, i_last,
  input [LANES-1:0][$clog2(SLICE_BYTES+1)-1:0] i_count,
  input [LANES-1:0][8*SLICE_BYTES-1:0] i_data,
  input o__valid, o__ready,
  input [8*WORD_BYTES-1:0] o_data,
  input [$clog2(WORD_BYTES+1)-1:0] o_count,
  input o_last,
  // Registers of the collector
  input [$clog2(WORD_BYTES)-1:0] inner_level, inner_place, inner_spilled_count,
  input [$clog2(WORD_BYTES):0] inner_end,
  input inner_valid, inner_last, inner_flush,
  input [8*RING_BYTES-1:0] inner_ring,
  input [8*(SLICE_BYTES-1)-1:0] inner_spilled,
  input [(LANES > 1 ? $clog2(LANES) : 1)-1:0] inner_turn
);
  localparam int TURN_BITS = LANES > 1 ? $clog2(LANES) : 1, COUNT_BITS = $clog2(SLICE_BYTES + 1);
  localparam int SIZE = $clog2(4 * WORD_BYTES + 1), RING_BITS = $clog2(RING_BYTES);

  // Slices that enter
  wire [LANES-1:0][SLICE_BYTES-1:0] bytes_of_lane;
  generate
    for (genvar n = 0; n < LANES; n++) begin : slice_of_lane
      first_bits #(.COUNT(SLICE_BYTES), .SIZE(8)) bits_in (.items(i_data[n]), .bits(bytes_of_lane[n]));
      always @* if (i_valid[n])
        assume (i_count[n] >= 1 && i_count[n] <= SLICE_BYTES && (bytes_of_lane[n] >> i_count[n]) == 0);
    end
  endgenerate
  reg [TURN_BITS-1:0] turn;
  wire [COUNT_BITS-1:0] count;
  wire [SLICE_BYTES-1:0] bytes_in;
  wire ends, finishes;
  choice #(.WIDTH(COUNT_BITS), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) count_of (.values(i_count), .index(turn), .value(count));
  choice #(.WIDTH(1), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) ends_of (.values(i_ends), .index(turn), .value(ends));
  choice #(.WIDTH(1), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) last_of (.values(i_last), .index(turn), .value(finishes));
  choice #(.WIDTH(SLICE_BYTES), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) bytes_of (
    .values(bytes_of_lane), .index(turn), .value(bytes_in)
  );
  wire enters = i_valid[turn] & i_ready[turn];
  always @(posedge clk)
    if (rst) turn <= 0;
    else if (enters & ends) turn <= turn == LANES - 1 ? 0 : turn + 1;

  // The byte that is followed
  (* anyconst *) wire [5:0] place;
  wire [SIZE-1:0] entering = enters ? count : 0, leaving = o__valid & o__ready ? o_count : 0;
  wire [SIZE-1:0] held, ahead, ahead_later;
  wire [1:0] item, item_later;
  wire active, followed;
  follow #(.ITEM(2), .SIZE(SIZE), .CAPACITY(2 * WORD_BYTES + 2 * SLICE_BYTES)) byte_of_slice (
    .candidate(enters & place < count), .ahead_of_new(held + place),
    .new_item({ends & finishes & place + 1 == count, bytes_in[place]}), .chosen(), .*
  );
  wire [WORD_BYTES-1:0] bytes_out;
  first_bits #(.COUNT(WORD_BYTES), .SIZE(8)) bits_out (.items(o_data), .bits(bytes_out));
  always @* if (started & ~rst) begin
    in_turn: assert ((i_valid & i_ready & ~(1 << turn)) == 0);
    if (o__valid) begin
      full: assert (o_count >= 1 && o_count <= WORD_BYTES && (o_last || o_count == WORD_BYTES));
      clean: assert ((bytes_out >> o_count) == 0);
      if (active & ahead < o_count) begin
        in_order: assert (bytes_out[ahead] == item[0]);
        job_ends: assert (item[1] == (o_last & ahead + 1 == o_count));
      end
    end
  end

  // Place of the byte
  wire [RING_BYTES-1:0] ring_bits;
  wire [SLICE_BYTES-2:0] spilled_bits;
  first_bits #(.COUNT(RING_BYTES), .SIZE(8)) bits_of_ring (.items(inner_ring), .bits(ring_bits));
  first_bits #(.COUNT(SLICE_BYTES-1), .SIZE(8)) bits_of_spilled (.items(inner_spilled), .bits(spilled_bits));
  wire [SIZE-1:0] shown = o__valid ? o_count : 0;                     // bytes at the output
  wire [SIZE-1:0] base = inner_valid ? inner_place : inner_level;
  wire [SIZE-1:0] middle = inner_flush ? inner_spilled_count : base;  // of the next word
  wire [SIZE-1:0] amount = inner_end - inner_place;                   // in the ring
  wire [WORD_BYTES-1:0] next_bits = o__valid ? spilled_bits : bytes_out;
  wire [SIZE-1:0] in_next = ahead_later - shown, in_slice = in_next - middle;
  wire [RING_BITS-1:0] in_ring_place = inner_place + in_slice;
  wire [RING_BYTES-1:0] zeros;  // bytes of the ring that are zero, or of the slice
  generate
    for (genvar n = 0; n < RING_BYTES; n++) begin : ring_byte
      wire [RING_BITS-1:0] distance = n - inner_place;
      assign zeros[n] = ~inner_valid | ~ring_bits[n] | distance < amount;
    end
  endgenerate
  always @* if (started) begin
    same_turn: assert (turn == inner_turn);
    total: assert (held == shown + middle + (inner_valid ? amount : 0));
    if (o__valid) word: assert (o_count >= 1 && o_count <= WORD_BYTES && (o_last || o_count == WORD_BYTES));
    if (inner_flush) flushes: assert (o__valid && ~o_last && base == 0 && middle >= 1 && middle < RING_BYTES);
    if (o__valid & o_last) job_over: assert (base == 0);
    if (inner_valid) slice: assert (amount >= 1 && amount <= SLICE_BYTES && inner_place < WORD_BYTES
      && inner_level == (inner_last ? 0 : inner_end % WORD_BYTES));
    no_more: assert ((bytes_out >> (o__valid ? o_count : base)) == 0);
    if (o__valid) no_more_next: assert ((spilled_bits >> middle) == 0);
    ring_clean: assert (&zeros);
    if (followed) begin
      if (ahead_later < shown)
        in_word: assert (item_later == {o_last & ahead_later + 1 == o_count, bytes_out[ahead_later]});
      else if (in_next < middle)
        in_next_word: assert (item_later == {inner_flush & in_next + 1 == middle, next_bits[in_next]});
      else
        in_ring: assert (inner_valid && in_slice < amount
          && item_later == {inner_last & in_slice + 1 == amount, ring_bits[in_ring_place]});
    end
  end
endmodule
