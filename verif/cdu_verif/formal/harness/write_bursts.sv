// The channel W has the words of the requests on AW, in their order: WLAST is with the last word of each and with no other.
//
// A request counts from the cycle on in which it is at the port, taken or not, and no word comes before its request.
module write_bursts #(parameter int CAPACITY = 8) (
  input clk, rst, started,
  input awvalid, awready,
  input [7:0] awlen,
  input wvalid, wready, wlast
);
  localparam int SIZE = $clog2(CAPACITY + 1);

  reg waits;       // the request at the port was there in the cycle before
  reg [7:0] place;  // words of the burst that have left
  wire offered = awvalid & ~waits, leaves = wvalid & wready;
  always @(posedge clk) begin
    waits <= awvalid & ~awready & ~rst;
    if (rst) place <= 0;
    else if (leaves) place <= wlast ? 0 : place + 1;
  end

  wire [SIZE-1:0] held, ahead;
  wire [7:0] item;
  wire active;
  follow #(.ITEM(8), .SIZE(SIZE), .CAPACITY(CAPACITY)) burst (
    .candidate(offered), .ahead_of_new(held), .new_item(awlen),
    .entering(SIZE'(offered)), .leaving(SIZE'(leaves & wlast)),
    .chosen(), .followed(), .ahead_later(), .item_later(), .*
  );
  always @* if (started & ~rst & wvalid) begin
    asked_for: assert (held != 0 || offered);
    if (active & ahead == 0) length: assert (wlast == (place == item));
  end
endmodule
