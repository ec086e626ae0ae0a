// Order and scale of the first blocks from reset on: rows leave as they came, and a scale is that of the greatest magnitude.
//
// A block has one format and one rule for its scale. Values stand in one lane, which is chosen; in the others are zeros. Of
// codes speaks mx_element_rules.
module mx_encoder_block #(
  parameter int LANES,
  parameter int ROWS,       // of a block
  parameter int BLOCKS,     // that come; one of them is chosen
  parameter int FORMAT,     // of the chosen one
  parameter int FRACTION_BITS,
  parameter int EMAX,
  parameter int FRACTION,   // of the greatest element
  parameter int BITS
) (
  input clk, rst, started,
  input i__valid, i__ready, o__valid, o__ready,
  input [LANES-1:0][31:0] i_values,
  input [2:0] i_format,
  input i_rceil,
  input [7:0] o_scale,
  input [LANES*8-1:0] o_codes,
  input o_heads,
  input [2:0] o_format
);
  localparam int COUNT = $clog2(BLOCKS * ROWS + 1);
  (* anyconst *) reg [COUNT-1:0] block;
  (* anyconst *) reg rceil;
  (* anyconst *) reg [$clog2(LANES)-1:0] lane;

  wire enters = i__valid & i__ready, leaves = o__valid & o__ready;
  reg [COUNT-1:0] rows_in, rows_out;
  always @(posedge clk) begin
    rows_in <= rst ? 0 : rows_in + COUNT'(enters);
    rows_out <= rst ? 0 : rows_out + COUNT'(leaves);
  end
  wire mine_in = rows_in / ROWS == block, mine_out = rows_out / ROWS == block;

  always @* begin
    assume (rows_in < BLOCKS * ROWS | !i__valid);
    if (mine_in & i__valid) assume (i_format == 3'(FORMAT) & i_rceil == rceil);
    for (int n = 0; n < LANES; n++) if (n != lane) assume (i_values[n] == 0);
  end

  // The greatest magnitude of the block, NaN above all
  reg [30:0] most;
  wire [30:0] magnitude = i_values[lane][30:0];
  always @(posedge clk) if (enters & mine_in & (rows_in % ROWS == 0 | magnitude > most)) most <= magnitude;

  wire [7:0] scale;
  mx_scale_reference #(
    .FRACTION_BITS(FRACTION_BITS), .EMAX(EMAX), .FRACTION(FRACTION)
  ) reference (.most(most), .rceil(rceil), .scale(scale));

  always @* if (started & o__valid & mine_out) begin
    format: assert (o_format == 3'(FORMAT));
    heads: assert (o_heads == (rows_out % ROWS == 0));
    scales: assert (o_scale == (o_heads ? scale : 0));
    behind: assert (BITS == 8 | ~|(o_codes >> (BITS * LANES)));
  end
endmodule
