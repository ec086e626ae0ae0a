// Parts of segments: each begins where the one before it ended, and the last one has the padding and the mark of its segment.
// The burst of a part follows it: the words in which its bytes lie, at most MOST, up to a boundary of 4 KiB.
module segment_cuts #(
  parameter int PLACE,  // binary logarithm of the bytes of a word
  parameter int MOST
) (
  input clk, rst, started,
  input segments__valid, segments__ready,
  input [39:0] segments_address,
  input [31:0] segments_bytes,
  input [9:0] segments_pad,
  input segments_last, segments_repeats,
  input parts__valid, parts__ready,
  input [PLACE-1:0] parts_offset,
  input [PLACE+$clog2(MOST):0] parts_bytes,
  input [9:0] parts_pad,
  input parts_last, parts_repeats,
  input bursts__valid, bursts__ready,
  input [39:0] bursts_address,
  input [4:0] bursts_words,
  input inner_held,
  input [39:0] inner_address,
  input [31:0] inner_left,
  input [9:0] inner_pad,
  input inner_last, inner_repeats
);
  reg busy;  // a segment was taken and has parts to come
  reg [39:0] next;
  reg [31:0] left;
  reg [9:0] pad;
  reg last, repeats;
  reg expects;  // the burst that is offered
  reg [39:0] burst_address;
  reg [4:0] burst_words;
  wire part = parts__valid & parts__ready;
  wire ends = parts_bytes == left;
  wire [31:0] reached = parts_offset + parts_bytes;  // bytes from the beginning of the first word on
  wire [31:0] words = (reached + (1 << PLACE) - 1) >> PLACE;
  always @(posedge clk)
    if (rst) {busy, expects} <= 0;
    else begin
      if (part) begin
        {busy, next, left} <= {~ends, next + parts_bytes, left - parts_bytes};
        {expects, burst_address, burst_words} <= {left != 0, next - parts_offset, words[4:0]};
      end else if (bursts__ready) expects <= 0;
      if (segments__valid & segments__ready)
        {busy, next, left, pad, last, repeats} <=
          {1'b1, segments_address, segments_bytes, segments_pad, segments_last, segments_repeats};
    end
  always @* if (started & ~rst) begin
    in_turn: assert (segments__ready == (~busy | (part & ends)));
    held: assert (inner_held == busy & (~busy | (inner_address == next & inner_left == left)));
    its_own: assert (~busy | {inner_pad, inner_last, inner_repeats} == {pad, last, repeats});
    offered: assert (bursts__valid == expects);
    if (expects) begin
      its_words: assert (bursts_address == burst_address & bursts_words == burst_words);
      short_enough: assert (bursts_words != 0 & bursts_words <= MOST);
      aligned: assert (bursts_address[PLACE-1:0] == 0);
      inside_4k: assert (bursts_address[11:0] + (bursts_words << PLACE) <= 4096);
    end
    if (parts__valid) begin
      taken: assert (busy);
      some: assert (parts_bytes <= left & (parts_bytes != 0 | left == 0));
      its_place: assert (parts_offset == next[PLACE-1:0]);
      repeated: assert (parts_repeats == repeats);
      its_end: assert (ends ? parts_pad == pad & parts_last == last : parts_pad == 0 & ~parts_last);
    end
  end
endmodule
