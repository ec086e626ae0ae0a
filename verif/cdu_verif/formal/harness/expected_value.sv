// What a lane offers is what the reference says.
module expected_value #(
  parameter int WIDTH
) (
  input started, valid,
  input [WIDTH-1:0] value, expected
);
  always @* if (started & valid) arithmetic: assert (value == expected);
endmodule
