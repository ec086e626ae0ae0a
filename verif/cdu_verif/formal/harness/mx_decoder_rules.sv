// The value of a lane against its definition: a significand, moved up to its leading one, times the scale of the block.
module mx_decoder_rules #(
  parameter int LANES,
  parameter int FORMAT,         // of all rows
  parameter int FRACTION_BITS,
  parameter int BIAS,           // minus the exponent of the smallest normal elements
  parameter int GREATEST,
  parameter bit INTEGER,
  parameter bit INFINITE,       // the code behind the greatest one is infinity
  parameter int BITS
) (
  input clk, rst, started,
  input i__valid, i__ready, o__valid,
  input [7:0] i_scale,
  input [LANES*8-1:0] i_codes,
  input i_heads,
  input [2:0] i_format,
  input [LANES-1:0][31:0] o_values
);
  always @* assume (i_format == 3'(FORMAT));

  wire enters = i__valid & i__ready;
  reg [7:0] scale;
  reg [LANES*8-1:0] codes;
  reg headed;
  always @(posedge clk) begin
    headed <= !rst & (headed | (enters & i_heads));
    if (enters) codes <= i_codes;
    if (enters & i_heads) scale <= i_scale;
  end

  generate
    for (genvar n = 0; n < LANES; n++) begin : lane
      wire [BITS-1:0] code = codes[BITS*n +: BITS];
      wire sign = code[BITS-1];
      wire [BITS-1:0] magnitude = INTEGER ? (sign ? -code : code) : {1'b0, code[BITS-2:0]};
      // Octave, counted from that of subnormal numbers, and significand of a number that is no integer
      wire [7:0] field = INTEGER ? 0 : 8'(magnitude >> FRACTION_BITS);
      wire [7:0] octave = field == 0 ? 0 : field - 1;
      wire [7:0] fraction_mask = 8'((1 << FRACTION_BITS) - 1);
      wire [7:0] significand = field == 0 ? 8'(magnitude) : (8'(magnitude) & fraction_mask) | (fraction_mask + 1);
      logic [3:0] top;
      always @* begin
        top = 0;
        for (int place = 0; place < 8; place++) if (significand[place]) top = 4'(place);
      end
      wire signed [11:0] exponent =
        $signed({4'b0, scale}) + $signed({4'b0, octave}) + $signed({8'b0, top}) - 12'(BIAS + FRACTION_BITS);
      wire [30:0] fraction = ({23'b0, significand} << (23 - top)) & 31'h7fffff;
      wire beyond = !INTEGER & 8'(magnitude) > 8'(GREATEST);
      wire nan = scale == 255 | (beyond & !(INFINITE & 8'(magnitude) == 8'(GREATEST + 1)));
      wire [31:0] expected =
        nan ? 32'h7fc00000
        : beyond | (significand != 0 & exponent >= 255) ? {sign, 31'h7f800000}
        : significand == 0 | exponent <= 0 ? {sign, 31'b0}
        : {sign, exponent[7:0], fraction[22:0]};
      always @* if (started & o__valid & headed) assert (o_values[n] == expected);
    end
  endgenerate
endmodule
