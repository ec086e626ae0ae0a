// The bursts on the channel W are those of the requests on AW, in their order: each comes from the writer that its request has
// as ID. A request counts from the cycle on in which it is at the port, taken or not, and no word comes before its request.
module write_turns #(
  parameter int ID_BITS,
  parameter int CAPACITY  // bursts that were asked for and whose words have not all left
) (
  input clk, rst, started,
  input awvalid, awready,
  input [ID_BITS-1:0] awid,
  input wvalid, wready, wlast,
  // of the device: whose words these are
  input inner_order__o__payload
);
  localparam int SIZE = $clog2(CAPACITY + 1);

  reg waits;  // the request at the port was there in the cycle before
  wire offered = awvalid & ~waits;
  always @(posedge clk) waits <= awvalid & ~awready & ~rst;

  wire [SIZE-1:0] held, ahead;
  wire [ID_BITS-1:0] item;
  wire active;
  follow #(.ITEM(ID_BITS), .SIZE(SIZE), .CAPACITY(CAPACITY)) burst (
    .candidate(offered), .ahead_of_new(held), .new_item(awid),
    .entering(SIZE'(offered)), .leaving(SIZE'(wvalid & wready & wlast)),
    .chosen(), .followed(), .ahead_later(), .item_later(), .*
  );
  always @* if (started & ~rst & wvalid) begin
    asked_for: assert (held != 0 || offered);
    if (active & ahead == 0) its_own: assert (inner_order__o__payload == item);
  end
endmodule
