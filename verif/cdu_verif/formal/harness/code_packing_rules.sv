// Codes side by side: code n stands at bit n * bits, zeros behind the last one; unpacking gives the codes back.
//
// together, back, size are what the device makes of row, bits_log2 and count.
module code_packing_rules #(
  parameter int CODES,      // in a row
  parameter int VALUE_BITS  // of a code that is not packed, and of a byte
) (
  input [CODES*VALUE_BITS-1:0] row,
  input [1:0] bits_log2,
  input [CODES*VALUE_BITS-1:0] together, back,
  input [$clog2(CODES+1)-1:0] count, size
);
  localparam int ROW_BITS = CODES * VALUE_BITS;

  wire [3:0] bits = 1 << bits_log2;
  wire [VALUE_BITS-1:0] most = (1 << bits) - 1;
  wire [CODES-1:0][VALUE_BITS-1:0] codes, codes_back = back;
  wire [CODES:0][ROW_BITS-1:0] placed_codes;  // with the codes before the n-th one
  wire [CODES-1:0] same;

  assign placed_codes[0] = 0;
  generate
    for (genvar n = 0; n < CODES; n++) begin : place
      assign codes[n] = row[VALUE_BITS*n +: VALUE_BITS] & most;
      assign same[n] = codes_back[n] == codes[n];
      assign placed_codes[n+1] = placed_codes[n] | (ROW_BITS'(codes[n]) << (n * bits));
    end
  endgenerate

  always @* begin
    unpacked: assert (&same);
    placed: assert (together == placed_codes[CODES]);
    if (count <= CODES) whole: assert (size == (count * bits + VALUE_BITS - 1) / VALUE_BITS);
  end
endmodule
