// The first bit of every byte, row or other item: what is followed of it.
module first_bits #(
  parameter int COUNT,
  parameter int SIZE  // bits of an item
) (
  input [COUNT*SIZE-1:0] items,
  output [COUNT-1:0] bits
);
  generate
    for (genvar n = 0; n < COUNT; n++) begin : item
      assign bits[n] = items[SIZE*n];
    end
  endgenerate
endmodule
