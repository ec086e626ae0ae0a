// Meaning of a queue's counters: the number of places taken between the one written next and the one read.
module queue_counters #(
  parameter int DEPTH
) (
  input started,
  input [$clog2(DEPTH+1)-1:0] level,
  input [$clog2(DEPTH)-1:0] produce, consume
);
  localparam int BITS = $clog2(DEPTH + 1);
  localparam [BITS-1:0] ALL = DEPTH;
  wire [BITS-1:0] behind = produce >= consume ? BITS'(produce) - BITS'(consume) : ALL + BITS'(produce) - BITS'(consume);
  always @* if (started) counters: assert (
    level <= ALL && BITS'(produce) < ALL && BITS'(consume) < ALL && (level == ALL ? behind == 0 : behind == level)
  );
endmodule
