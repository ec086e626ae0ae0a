// The register behind a packet is that of the definition. A packet that has a CRC is said to be wrong two cycles after its last
// word has come, if and only if its register is not the residue then.
module crc_checker_rules #(
  parameter int BYTES,
  parameter bit [31:0] POLYNOMIAL, INITIAL, RESIDUE
) (
  input clk, rst, started,
  input i__valid, i__ready, i_last,
  input [$clog2(BYTES+1)-1:0] i_count,
  input [8*BYTES-1:0] i_data,
  input bad_crc,
  // of the device: the register, what goes into it next, moved to the end of a word, and whether the packet has a CRC
  input [31:0] inner_crc,
  input [8*BYTES-1:0] inner_at_end1,
  input [$clog2(BYTES+1)-1:0] inner_places1,
  input inner_fresh, inner_last1, inner_signed1
);
  always @* if (i__valid) assume (i_count <= BYTES && (i_data >> {i_count, 3'b0}) == 0);

  // The word that came in the cycle before
  reg came = 0, last, wrong = 0;
  reg [8*BYTES-1:0] data;
  reg [$clog2(BYTES+1)-1:0] count;
  reg [31:0] prior = INITIAL;
  wire [31:0] behind;
  crc_reference #(.BYTES(BYTES), .POLYNOMIAL(POLYNOMIAL)) definition (.*);
  always @(posedge clk) begin
    came <= i__valid & i__ready & ~rst;
    if (i__valid & i__ready) {data, count, last} <= {i_data, i_count, i_last};
    if (rst) prior <= INITIAL;
    else if (came) prior <= last ? INITIAL : behind;
    wrong <= came & last & inner_signed1 & behind != RESIDUE & ~rst;
  end
  always @* if (started & ~rst) begin
    follows: assert (inner_fresh == came && inner_crc == prior);
    if (came) moved: assert (
      inner_last1 == last && inner_places1 == BYTES - count && inner_at_end1 == data << {inner_places1, 3'b0}
    );
    told: assert (bad_crc == wrong);
  end
endmodule
