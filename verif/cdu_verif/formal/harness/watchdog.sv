// Nothing moves for at most so many cycles while a job is under way and the register WATCHDOG keeps a value other than 0.
//
// After that comes the abort, and one cycle later no job is under way.
module watchdog #(
  parameter int BITS,   // of a register
  parameter int DELAY   // cycles from the last one that the watchdog counts to the abort
) (
  input clk, rst, started,
  input moves,                       // something transfers at the ports of the data path, or inside
  input unit__abort,
  input inner_busy, inner_expired,   // a job is under way; its time is over
  input [BITS-1:0] inner_still,      // cycles without movement, as the watchdog counts them
  input [BITS-1:0] limit             // register WATCHDOG
);
  reg [BITS-1:0] limit_before;
  reg aborted;
  reg [BITS:0] quiet;  // cycles without movement up to the one before
  wire counts = inner_busy & ~moves & ~unit__abort & limit != 0;
  always @(posedge clk) begin
    limit_before <= limit;
    aborted <= unit__abort & ~rst;
    quiet <= rst | ~counts ? 0 : limit != limit_before ? 1 : quiet + 1;
  end
  wire [BITS:0] still_then = inner_still + {{BITS{1'b0}}, 1'b1};
  always @* if (started) begin
    if (quiet != 0 && limit == limit_before) in_time: assert (quiet <= limit + DELAY);
    if (aborted) over: assert (~inner_busy);
    if (quiet >= 2) counting: assert (inner_expired || unit__abort || still_then >= quiet);
  end
endmodule
