// A descriptor is read only when it was rung: TAIL, two cycles before the request, was ahead of its number, and no more than
// the places of the ring ahead of HEAD and of the number. The descriptor lies in the ring, below the last address.
module rung_descriptors #(
  parameter int BYTES,  // of a descriptor
  parameter int WORD_BYTES
) (
  input clk, rst, started,
  input enable, rewind, working,
  input [39:0] ring,
  input [4:0] ring_log2,
  input [31:0] tail, head,
  input bursts__valid, bursts__ready,
  input [39:0] bursts_address,
  input [4:0] bursts_words,
  input o__valid, o__ready,
  input [31:0] o_number
);
  // A ring is moved only while it does not run; its registers refuse other numbers.
  always @* begin
    assume (ring_log2 <= 16);
    assume (ring % BYTES == 0);
    if (working | enable) assume (~rewind);
  end
  reg [39:0] ring_before;
  reg [4:0] log2_before;
  reg worked;
  always @* if (started & worked) assume (ring == ring_before & ring_log2 == log2_before);

  reg [31:0] number;  // descriptors that were given since the ring began
  reg [31:0] tail_1, tail_2, head_1, head_2;
  reg enabled, waits;
  always @(posedge clk) begin
    ring_before <= ring;
    log2_before <= ring_log2;
    worked <= (working | enable) & ~rst;
    tail_1 <= tail;
    tail_2 <= tail_1;
    head_1 <= head;
    head_2 <= head_1;
    enabled <= enable;
    waits <= bursts__valid & ~bursts__ready & ~rst;
    if (rst | rewind) number <= 0;
    else if (o__valid & o__ready) number <= number + 1;
  end

  wire [31:0] places = 32'd1 << ring_log2;
  wire [40:0] end_of_ring = {1'b0, ring} + ({9'd0, places} * BYTES);
  wire [31:0] waiting = tail_2 - number;
  wire [31:0] given = tail_2 - head_2;
  always @* if (started & ~rst) begin
    in_order: assert (o_number == number);
    if (bursts__valid & ~waits) begin
      enabled_ring: assert (enabled);
      rung: assert (waiting != 0 & waiting <= places & given <= places);
    end
    if (bursts__valid) begin
      whole: assert (bursts_words * WORD_BYTES == BYTES);
      below_the_last_address: assert ({1'b0, bursts_address} + BYTES <= 41'h100_0000_0000);
      in_the_ring: assert (bursts_address >= ring & {1'b0, bursts_address} < end_of_ring);
      its_place: assert (bursts_address - ring == (number & (places - 1)) * BYTES);
    end
  end
endmodule
