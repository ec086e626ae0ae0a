// One of several values, by its number; the last one for every number behind.
module choice #(
  parameter int WIDTH,
  parameter int COUNT,
  parameter int INDEX_BITS
) (
  input [COUNT-1:0][WIDTH-1:0] values,
  input [INDEX_BITS-1:0] index,
  output logic [WIDTH-1:0] value
);
  always @* begin
    value = values[COUNT-1];
    for (int n = 0; n < COUNT - 1; n++)
      if (index == n) value = values[n];
  end
endmodule
