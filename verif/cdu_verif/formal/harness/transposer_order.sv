// The value at `column` of row `row` of any block leaves in lane `row` of beat `column` of the same block.
module transposer_order #(
  parameter int WIDTH,      // bits of a value
  parameter int BLOCK_SIDE  // rows of a block, and values of a row: a power of two
) (
  input clk, rst, started,
  input i__valid, i__ready, o__valid, o__ready,
  input [BLOCK_SIDE*WIDTH-1:0] i__payload, o__payload
);
  localparam int SIZE = $clog2(2 * BLOCK_SIDE + 1);

  (* anyconst *) wire [$clog2(BLOCK_SIDE)-1:0] row;
  (* anyconst *) wire [$clog2(BLOCK_SIDE)-1:0] column;
  wire [SIZE-1:0] entering = i__valid & i__ready, leaving = o__valid & o__ready;
  reg [$clog2(BLOCK_SIDE)-1:0] step;  // the row that enters
  always @(posedge clk) step <= rst ? 0 : step + entering;

  wire [SIZE-1:0] held, ahead;
  wire [WIDTH-1:0] item;
  wire active;
  follow #(.ITEM(WIDTH), .SIZE(SIZE), .CAPACITY(2 * BLOCK_SIDE)) value (
    .candidate(entering != 0 & step == row), .ahead_of_new(held + column - row),
    .new_item(i__payload[column * WIDTH +: WIDTH]), .chosen(), .followed(), .ahead_later(), .item_later(), .*
  );
  always @* if (started & ~rst & active & o__valid & ahead == 0)
    in_order: assert (o__payload[row * WIDTH +: WIDTH] == item);
endmodule
