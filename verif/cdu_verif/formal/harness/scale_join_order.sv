// The n-th packet of scales comes from the source that the n-th job names, and is whole.
module scale_join_order #(
  parameter int REGISTERS,    // sources
  parameter int PORT,
  parameter int LAST_SOURCE,  // greatest number of a source
  parameter int CAPACITY      // jobs
) (
  input clk, rst, started,
  input job__valid, job__ready,
  input [1:0] job_source,
  input written__valid, written__ready, streamed__valid, streamed__ready,
  input o__valid, o__ready, o_last
);
  localparam int SIZE = 5;

  always @* assume (job_source <= LAST_SOURCE);
  wire transfer = o__valid & o__ready;
  wire from_registers = written__valid & written__ready, from_port = streamed__valid & streamed__ready;

  // The job that is followed
  wire [SIZE-1:0] entering = job__valid & job__ready, leaving = transfer & o_last;
  wire [SIZE-1:0] held, ahead_later;
  wire [1:0] item_later;
  wire followed;
  follow #(.ITEM(2), .SIZE(SIZE), .CAPACITY(CAPACITY)) job (
    .candidate(entering != 0), .ahead_of_new(held), .new_item(job_source), .chosen(), .active(), .ahead(), .item(), .*
  );
  wire its_packet = followed & ahead_later == 0 & transfer;

  reg in_packet, before_from_registers;
  always @(posedge clk) begin
    in_packet <= ~rst & (transfer ? ~o_last : in_packet);
    if (transfer) before_from_registers <= from_registers;
  end
  always @* if (started & ~rst) begin
    one_source: assert (transfer == (from_registers | from_port) && ~(from_registers & from_port));
    whole: assert (~(transfer & in_packet) || from_registers == before_from_registers);
    if (its_packet & item_later == REGISTERS) registers: assert (from_registers);
    if (its_packet & item_later == PORT) port: assert (from_port);
  end
endmodule
