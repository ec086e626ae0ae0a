// The payload and the scales of a job that is run, and a record that is written, lie below the last address. The values of a
// tensor lie where its strides say, modulo the number of addresses; the first value has an address.
module places_in_memory #(
  parameter int SCALE_BYTES,
  parameter int RECORD_BYTES
) (
  input started, rst,
  input o__valid, o_failed, o_nowhere,
  input [7:0] o_errors,
  input scaled, flat,
  input [63:0] o_tensor, o_payload, o_scales, o_completion,
  input [31:0] o_payload_bytes, o_c,
  input i__valid,
  // of the device: its state, and whether a product is under way
  input [3:0] inner_fsm_state,
  input inner_multiplier__busy
);
  localparam logic [64:0] ADDRESSES = 65'd1 << 40;
  wire [64:0] channels = flat ? 65'd1 : {33'd0, o_c};
  // A descriptor is there from the first look on until the job has left; behind the last product there is none.
  localparam logic [3:0] FIRST = 0, KEEP = 3, PADDING = 6, GROUPS = 7, READY = 8;
  wire behind = inner_fsm_state == KEEP | inner_fsm_state == PADDING | inner_fsm_state == GROUPS | inner_fsm_state == READY;
  always @* if (started & ~rst) begin
    there: assert (i__valid | (inner_fsm_state == FIRST & ~inner_multiplier__busy));
    multiplied: assert (~(behind & inner_multiplier__busy));
    given: assert (o__valid == (inner_fsm_state == READY));
  end
  always @* if (started & ~rst & o__valid & ~o_failed) begin
    if (o_errors == 0) begin
      tensor: assert ({1'b0, o_tensor} < ADDRESSES);
      payload: assert ({1'b0, o_payload} + o_payload_bytes <= ADDRESSES);
      if (scaled) scales: assert ({1'b0, o_scales} + channels * SCALE_BYTES <= ADDRESSES);
    end
    if (~o_nowhere) record: assert ({1'b0, o_completion} + RECORD_BYTES <= ADDRESSES);
  end
endmodule
