// The reciprocal of a found step m * 2**e: 2**SHIFT / m for the normalised mantissa, and the shift that goes with it.
module reciprocal_of_step #(
  parameter int MANTISSA_BITS,
  parameter int RECIPROCAL_SHIFT,
  parameter int FRACTION_BITS
) (
  input [MANTISSA_BITS-1:0] mantissa,
  input [3:0] exponent,
  output logic [FRACTION_BITS:0] reciprocal,
  output logic [5:0] right  // shift of a product with the reciprocal that leaves FRACTION_BITS
);
  localparam int HALF = 1 << (MANTISSA_BITS - 1);  // least normalised mantissa

  logic [MANTISSA_BITS-1:0] normal;
  always @* begin
    normal = HALF;
    right = 0;
    for (int place = 0; place < MANTISSA_BITS; place++)  // the highest set bit wins
      if (mantissa[place]) begin
        normal = mantissa << (MANTISSA_BITS - 1 - place);
        right = RECIPROCAL_SHIFT - FRACTION_BITS - (MANTISSA_BITS - 1 - place) + exponent;
      end
  end

  always @* begin  // a choice between constants: solvers know nothing of division
    reciprocal = 0;
    for (int m = HALF; m < 2 * HALF; m++)
      if (normal == m) reciprocal = ((1 << RECIPROCAL_SHIFT) + m / 2) / m;
  end
endmodule
