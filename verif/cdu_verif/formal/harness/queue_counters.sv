// What the counters of a queue mean: so many places are taken between the one that is written next and the one that is read.
module queue_counters #(
  parameter int DEPTH  // a power of two
) (
  input started,
  input [$clog2(DEPTH+1)-1:0] level,
  input [$clog2(DEPTH)-1:0] produce, consume
);
  wire [$clog2(DEPTH)-1:0] taken = produce - consume;
  always @* if (started) counters: assert (level <= DEPTH && level % DEPTH == taken);
endmodule
