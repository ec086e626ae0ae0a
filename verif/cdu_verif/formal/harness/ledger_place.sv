// A place that jobs pass in their order: what is found there in the turn of the job that is followed stands in its record, and
// nothing else does.
module ledger_place #(
  parameter int SIZE,     // bits of counts
  parameter bit WAITED,   // no job has ended that is here; else no job is to be here that has ended
  parameter bit COUNTED,  // all jobs come here
  parameter bit PROVEN
) (
  input clk, rst, started,
  input comes, chosen,   // a job is started that comes here; it is the one to be followed
  input follow,          // a job is followed that was started earlier
  input over,            // it has ended
  input shown,           // its record is shown,
  input flag,            // with this error
  input in_entry,        // which its entry has
  input abort, ends, found,
  input [SIZE-1:0] under,       // jobs that have not ended
  input [SIZE-1:0] its_place,   // how many jobs before the next one was the one that is followed started, itself among them
  input [SIZE-1:0] distance,    // jobs here, as the device counts them; modulo the length of the ring where some do not come
  output here            // it has not left the place
);
  reg [SIZE-1:0] held = 0, ahead;
  reg waits = 0, expected;
  wire turn = held != 0 & waits & ahead == 0;

  assign here = waits;
  always @(posedge clk) begin
    held <= rst | abort ? 0 : held + comes - ends;
    if (rst | abort) waits <= 0;
    else if (chosen) waits <= comes;
    else if (turn & ends) waits <= 0;
    ahead <= chosen ? held - ends : ahead - (waits & ends);
    expected <= ~chosen & (expected | (turn & found));
  end
  always @* begin
    assume (held != 0 || !(ends | found));  // nothing happens where no job is
    assume (!(turn & found & over));        // nothing is found of a job that has ended
    if (!WAITED) assume (held <= under);
  end
  always @* if (started & ~rst) begin
    if (WAITED) not_ended: assert (held <= under);
    as_many: assert (COUNTED ? distance == held : distance[SIZE-2:0] == held[SIZE-2:0]);
    if (waits) behind: assert (follow & ahead < held);
    if (COUNTED & follow) still_here: assert (waits == (its_place <= held));
    if (COUNTED & waits) its_turn: assert (held - ahead == its_place);
    if (PROVEN & follow) entered: assert (in_entry == expected);
    if (PROVEN & follow & shown) its_own: assert (flag == expected);
  end
endmodule
