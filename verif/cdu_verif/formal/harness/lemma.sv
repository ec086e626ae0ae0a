// One of several statements that are proven in turn: those before the one that is proven are assumed.
module lemma #(
  parameter int NUMBER,
  parameter int PROVEN
) (
  input holds
);
  always @* if (NUMBER == PROVEN) proven: assert (holds);
  else if (NUMBER < PROVEN) assume (holds);
endmodule
