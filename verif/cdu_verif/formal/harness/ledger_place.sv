// A place that jobs pass in their order: what is found there while it is the turn of the job that is followed stands in its record,
// and nothing else does.
module ledger_place #(
  parameter int SIZE  // bits of counts
) (
  input clk, rst, started,
  input comes, chosen,   // a job is started that comes here; it is the one to be followed
  input follow,          // a job is followed that was started earlier
  input over,            // it has ended
  input shown,           // its record is shown,
  input flag,            // with this error
  input abort, ends, found,
  output here            // it has not left the place
);
  reg [SIZE-1:0] held = 0, ahead;
  reg inside = 0, expected;
  wire turn = held != 0 & inside & ahead == 0;

  assign here = inside;
  always @(posedge clk) begin
    held <= rst | abort ? 0 : held + comes - ends;
    if (rst | abort) inside <= 0;
    else if (chosen) inside <= comes;
    else if (turn & ends) inside <= 0;
    ahead <= chosen ? held - ends : ahead - (inside & ends);
    expected <= ~chosen & (expected | (turn & found));
  end
  always @* begin
    assume (held != 0 || !(ends | found));  // nothing happens where no job is
    assume (!(turn & found & over));        // nothing is found of a job that has ended
  end
  always @* if (started & ~rst & follow & shown) its_own: assert (flag == expected);
endmodule
