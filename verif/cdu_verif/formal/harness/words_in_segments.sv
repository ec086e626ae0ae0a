// Words go where the segments of their packet say, byte by byte from the first address on, and no further. While a burst is
// open, the next word is the next one in memory. No burst is open when a segment begins, and none when a packet has ended.
module words_in_segments #(parameter BYTES = 8) (
  input clk, rst, started,
  input segments__valid, segments__ready,
  input [39:0] segments_address,
  input [31:0] segments_bytes,
  // Words that the module that makes bursts takes
  input inner_former__i__valid, inner_former__i__ready, inner_former__begun,
  input [40+9*BYTES:0] inner_former__i__payload,
  // Registers of the writer, and the end of a packet
  input inner_active, inner_rest, inner_window__finishes,
  input [39-$clog2(BYTES):0] inner_word_address,
  input [$clog2(BYTES)-1:0] inner_offset,
  input [31:0] inner_left,
  input inner_of_memory, inner_whole,
  input [$clog2(BYTES):0] inner_count
);
  localparam PLACE = $clog2(BYTES);
  wire takes = segments__valid & segments__ready, writes = inner_former__i__valid & inner_former__i__ready;
  wire [39:0] address = inner_former__i__payload[39:0];
  wire [BYTES-1:0] strobe = inner_former__i__payload[40+8*BYTES +: BYTES];
  logic [PLACE:0] count;  // bytes that are written
  always @* begin
    count = 0;
    for (int n = 0; n < BYTES; n++) count = count + strobe[n];
  end

  wire [PLACE:0] room = BYTES - inner_offset;

  reg [39:0] place;  // of the next byte of the segment
  reg [31:0] left;   // bytes of it behind that
  reg fresh, over;   // no word of the segment has been written; the packet ended in the cycle before
  reg [39-PLACE:0] expected;
  always @(posedge clk)
    if (rst) begin fresh <= 1; over <= 1; end
    else begin
      over <= inner_window__finishes;
      fresh <= takes | (fresh & ~writes);
      if (writes) expected <= (address >> PLACE) + 1;
      if (takes) begin place <= segments_address; left <= segments_bytes; end
      else if (writes) begin place <= place + count; left <= left - count; end
    end
  always @* if (started & ~rst) begin
    if (inner_former__i__valid) begin
      own_word: assert (address >> PLACE == place >> PLACE);
      own_bytes: assert (strobe == BYTES'(((1 << count) - 1) << place[PLACE-1:0]));
      no_further: assert (count <= left);
      follows: assert (~inner_former__begun | address >> PLACE == expected);
    end
    ends_with_segment: assert (~(fresh & inner_former__begun));
    ends_with_packet: assert (~(over & inner_former__begun));
    // The writer counts the same way, and a burst is open within a segment only.
    same: assert (~inner_active | (inner_left == left && (left == 0 || {inner_word_address, inner_offset} == place)));
    in_memory: assert (inner_of_memory == (inner_active & inner_left != 0));
    whole_piece: assert (~(inner_active & inner_of_memory & inner_whole) | inner_count == inner_left);
    other_piece: assert (~(inner_active & inner_of_memory & ~inner_whole) | (inner_count == room && inner_count < inner_left));
    in_its_word: assert (~(inner_active & inner_of_memory) | inner_count <= room);
    one_at_a_time: assert (~(inner_active & inner_rest));
    open: assert (~inner_former__begun | (inner_active && left != 0 && place == {expected, {PLACE{1'b0}}}));
  end
endmodule
