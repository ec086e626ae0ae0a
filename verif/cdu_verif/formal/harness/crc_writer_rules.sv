// The four bytes of a CRC follow the last byte of a packet that wants one, in a word of their own where there is no room.
module crc_writer_rules #(
  parameter int BYTES
) (
  input clk, rst, started,
  input i__valid, i_last,
  input [$clog2(BYTES+1)-1:0] i_count,
  input [8*BYTES-1:0] i_data,
  input o__valid, o__ready, o_last,
  input [$clog2(BYTES+1)-1:0] o_count,
  input [8*BYTES-1:0] o_data,
  // of the device: the words in both stages, the CRC, and whether the word in front gets it and a part of it has left
  input [31:0] inner_crc2,
  input [8*BYTES-1:0] data1, data2,
  input [$clog2(BYTES+1)-1:0] count1, count2,
  input last2, inner_valid1, inner_valid2, inner_signs, inner_rest
);
  always @* if (i__valid) assume (i_count <= BYTES && (i_data >> {i_count, 3'b0}) == 0);

  wire [8*BYTES+31:0] added = inner_signs ? {{8*BYTES{1'b0}}, inner_crc2} << {count2, 3'b0} : 0;
  wire [8*BYTES+31:0] whole = {32'b0, data2} | added;
  wire [$clog2(BYTES+5)-1:0] total = count2 + (inner_signs ? 4 : 0);
  wire spills = total > BYTES;
  always @* if (started & ~rst) begin
    if (inner_valid1) entered: assert (count1 <= BYTES && (data1 >> {count1, 3'b0}) == 0);
    if (inner_valid2) kept: assert (count2 <= BYTES && (data2 >> {count2, 3'b0}) == 0);
    parts: assert (!inner_rest || inner_valid2 & spills);
    if (inner_valid2 & inner_signs) ends: assert (last2);
    offered: assert (o__valid == inner_valid2);
    if (o__valid & ~inner_rest) begin
      front: assert (o_data == whole[8*BYTES-1:0] && o_count == (spills ? BYTES : total));
      closes: assert (o_last == (last2 & ~spills));
    end
    if (o__valid & inner_rest) back: assert (o_data == whole[8*BYTES+:32] && o_count == total - BYTES && o_last);
  end
endmodule
