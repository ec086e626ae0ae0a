// The rules of streams: valid and payload hold until the transfer, and valid never waits for ready.
//
// Inputs of a device are assumed to keep the rules, outputs must keep them. The cover of an output asks that valid rises and
// stays though ready has never been high.
module stream_rules #(
  parameter int WIDTH,   // of the payload
  parameter bit SENDER   // the device sends
) (
  input clk, rst,
  input valid, ready,
  input [WIDTH-1:0] payload
);
  reg waiting = 0;
  reg accepted = 0;
  reg [WIDTH-1:0] offered;
  always @(posedge clk) begin
    waiting <= valid & ~ready & ~rst;
    accepted <= accepted | ready;
    offered <= payload;
  end
  generate
    if (SENDER) begin : sender
      always @* if (waiting) begin
        hold_valid: assert (valid);
        hold_payload: assert (payload == offered);
      end
      always @* unasked: cover (waiting & valid & ~accepted);
    end else begin : environment
      always @* if (waiting) begin
        assume (valid);
        assume (payload == offered);
      end
    end
  endgenerate
endmodule
