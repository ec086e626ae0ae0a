// Every lane of every transfer equals the reference of the transfer before it, with the shift of its column.
//
// Columns are counted from reset; shifts and bank are free, an entry counts in the cycle in which its column enters.
module shift_quantizer_arithmetic #(
  parameter int LANES,
  parameter int COLUMNS,    // of a block, a power of two
  parameter bit INVERSE,
  parameter bit ROUND,      // of the quantiser
  parameter int X_BITS,
  parameter int SHIFT_BITS,
  parameter int POINT_BITS,
  parameter int Y_BITS,
  parameter int Y_MIN,
  parameter int Y_MAX
) (
  input clk, rst, started,
  input i__valid, i__ready, o__valid,
  input [LANES-1:0][X_BITS-1:0] i__payload,
  input [LANES-1:0][Y_BITS-1:0] o__payload,
  input [2*COLUMNS*LANES*SHIFT_BITS-1:0] shifts,  // by bank, column and lane
  input bank,
  input [POINT_BITS-1:0] point  // of the inverse, in parts of a step; up to a half
);
  localparam int SIZE = LANES * SHIFT_BITS;

  always @* assume (point <= 1 << (POINT_BITS - 1));

  wire enters = i__valid & i__ready;
  reg [$clog2(COLUMNS)-1:0] column;
  always @(posedge clk) column <= rst ? 0 : column + enters;
  wire [SIZE-1:0] shifts_of_column = shifts >> (SIZE * {bank, column});

  generate
    for (genvar n = 0; n < LANES; n++) begin : lane
      wire [Y_BITS-1:0] y;
      wire [1:0][Y_BITS-1:0] expected;
      if (INVERSE) begin : inverse
        inverse_shift_quantizer_reference #(
          .X_BITS(X_BITS), .SHIFT_BITS(SHIFT_BITS), .POINT_BITS(POINT_BITS), .Y_BITS(Y_BITS), .Y_MIN(Y_MIN), .Y_MAX(Y_MAX)
        ) reference (.x(i__payload[n]), .shift(shifts_of_column[SHIFT_BITS*n +: SHIFT_BITS]), .y(y), .*);
      end else begin : forward
        shift_quantizer_reference #(
          .X_BITS(X_BITS), .SHIFT_BITS(SHIFT_BITS), .Y_BITS(Y_BITS), .Y_MIN(Y_MIN), .Y_MAX(Y_MAX), .ROUND(ROUND)
        ) reference (.x(i__payload[n]), .shift(shifts_of_column[SHIFT_BITS*n +: SHIFT_BITS]), .y(y));
      end
      pipeline #(.WIDTH(Y_BITS), .STAGES(1)) due (.advance(enters), .value(y), .at(expected), .*);
      expected_value #(.WIDTH(Y_BITS)) rule (.valid(o__valid), .value(o__payload[n]), .expected(expected[1]), .*);
    end
  endgenerate
endmodule
