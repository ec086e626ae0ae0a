// No divisor of a table is 0.
module promised_divisors #(
  parameter int ENTRIES,
  parameter int DIVISOR_BITS
) (
  input [ENTRIES-1:0][DIVISOR_BITS-1:0] divisors
);
  wire [ENTRIES-1:0] there;
  generate
    for (genvar n = 0; n < ENTRIES; n++) begin : entry
      assign there[n] = divisors[n] != 0;
    end
  endgenerate
  always @* assume (&there);
endmodule
