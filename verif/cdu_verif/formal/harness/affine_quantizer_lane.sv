// One lane of the affine quantiser: code = min(B, (((t * inv) >> shift) + rho) >> 16), t = clamp(x - Z, 0, 65535).
//
// Values of modes without codes pass. What each register of the lane (inner_...) must hold is computed from the ones before it,
// so that both sides of the multiplication have the same operands.
module affine_quantizer_lane #(
  parameter int BASE_BITS,
  parameter int VALUE_BITS
) (
  input clk, started, advance,
  input [4:1] full,                    // the stages that hold a row
  input [4:0] affine,                  // settings of the rows in the stages, [0] of the one that enters
  input [4:0][1:0] bits_log2,
  input in_signed,                     // of the row in stage 3
  input [16:0] inverse,                // reciprocal of the row in stage 1
  input [2:1][4:0] shift,
  input [BASE_BITS-1:0] rho,           // what rounds the row in stage 3
  input signed [39:0] low,             // Z of the row that enters
  input signed [BASE_BITS-1:0] value,
  input [VALUE_BITS-1:0] code,
  input [16:0] inner_inverse,
  input [4:0] inner_shift,
  input [BASE_BITS-1:0] inner_distance,
  input [31:0] inner_product,
  input [24:0] inner_quotient
);
  // Entering: the distance from Z, or the value itself
  wire signed [39:0] far = value - low;
  wire [15:0] near = value;
  wire [15:0] t = ~affine[0] ? near[VALUE_BITS-1:0] : far < 0 ? 0 : far > 65535 ? 65535 : far;
  wire [4:0][VALUE_BITS-1:0] pass;
  pipeline #(.WIDTH(VALUE_BITS), .STAGES(4)) passing (.value(near[VALUE_BITS-1:0]), .at(pass), .*);

  // Stage 3: rounding
  reg [31:0] v;
  wire [3:0] bits = 1 << bits_log2[3];
  wire [7:0] most = (1 << bits) - 1;
  wire [32:0] whole = ({1'b0, v} + rho) >> 16;
  wire [7:0] rounded = whole > most ? most : whole;

  reg [15:0] distance;
  reg [31:0] product;
  reg [7:0] expected;
  always @(posedge clk) if (advance) begin
    distance <= t;
    product <= inner_inverse[16] ? inner_distance << 16 : inner_distance * inner_inverse[15:0];
    v <= inner_product >> inner_shift;
    expected <= in_signed ? (rounded ^ (1 << (bits - 1))) & most : rounded;
  end

  always @* if (started) begin
    if (full[1]) distances: assert (inner_distance == distance && (affine[1] || distance == pass[1]));
    if (full[1] & ~affine[1]) unit: assert (inverse == 65536 && shift[1] == 0);
    if (full[2]) multiplied:
      assert (inner_product == product && (affine[2] || (product == {8'd0, pass[2], 16'd0} && shift[2] == 0)));
    if (full[3]) shifted:
      assert (inner_quotient == {|v[31:24], v[23:0]} && (affine[3] || v == {8'd0, pass[3], 16'd0}));
    if (full[4]) begin
      arithmetic: assert (code == (affine[4] ? expected : pass[4]));
      at_most_b: assert (~affine[4] || (code >> (1 << bits_log2[4])) == 0);
    end
  end
endmodule
