// One item that enters is chosen freely and followed: how many items leave before it is known when it enters.
//
// As the choice is free, what is asserted of the item that is followed holds for all items. What is inside is counted: it never
// exceeds the capacity, and nothing leaves that has not entered.
module follow #(
  parameter int ITEM,      // bits of what is followed of an item
  parameter int SIZE,      // bits of counts
  parameter int CAPACITY   // items that there is room for
) (
  input clk, rst, started,
  input candidate,                 // an item that may be chosen enters in this cycle
  input [SIZE-1:0] ahead_of_new,   // items that leave before it, those of this cycle included
  input [ITEM-1:0] new_item,
  input [SIZE-1:0] entering,       // items that enter and leave in this cycle
  input [SIZE-1:0] leaving,
  output reg [SIZE-1:0] held,      // items inside
  output chosen,                   // in this cycle
  output active,                   // an item is followed, if only from this cycle on
  output [SIZE-1:0] ahead,
  output [ITEM-1:0] item,
  output followed,                 // an item chosen in an earlier cycle is inside
  output reg [SIZE-1:0] ahead_later,
  output reg [ITEM-1:0] item_later
);
  (* anyseq *) wire choose;
  reg follows = 0;

  assign followed = follows;
  assign chosen = candidate & choose & ~follows;
  assign active = follows | chosen;
  assign ahead = follows ? ahead_later : ahead_of_new;
  assign item = follows ? item_later : new_item;
  always @(posedge clk) begin
    follows <= active & ahead >= leaving & ~rst;
    ahead_later <= ahead - leaving;
    item_later <= item;
    held <= rst ? 0 : held + entering - leaving;
  end

  always @* if (started & ~rst) begin
    nothing_lost: assert (held <= CAPACITY);
    nothing_doubled: assert (leaving <= held + entering);
  end
endmodule
