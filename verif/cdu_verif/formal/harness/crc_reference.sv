// Next value of a CRC's register after the bytes of a word, bit by bit. Combinational.
module crc_reference #(
  parameter int BYTES,
  parameter bit [31:0] POLYNOMIAL
) (
  input [31:0] prior,
  input [8*BYTES-1:0] data,
  input [$clog2(BYTES+1)-1:0] count,
  output logic [31:0] behind
);
  integer place, shift;
  always @* begin
    behind = prior;
    for (place = 0; place < BYTES; place = place + 1)
      if (place < count) begin
        behind = behind ^ {24'b0, data[8*place +: 8]};
        for (shift = 0; shift < 8; shift = shift + 1) behind = (behind >> 1) ^ (behind[0] ? POLYNOMIAL : 32'b0);
      end
  end
endmodule
