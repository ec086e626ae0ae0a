// A lane offers the value of the reference.
module expected_value #(
  parameter int WIDTH
) (
  input started, valid,
  input [WIDTH-1:0] value, expected
);
  always @* if (started & valid) arithmetic: assert (value == expected);
endmodule
