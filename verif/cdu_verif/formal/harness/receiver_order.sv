// Bytes leave once, in order; no word is empty, but for that of a packet without bytes; a packet ends with its last byte.
//
// As many packets leave as come, those without bytes included: more than two cannot be inside.
module receiver_order #(
  parameter int BYTES  // of a word
) (
  input clk, rst, started,
  input tvalid, tready, tlast,
  input [8*BYTES-1:0] tdata,
  input [BYTES-1:0] tkeep,
  input clear, flush,
  input o__valid, o__ready,
  input [8*BYTES-1:0] o_data,
  input [$clog2(BYTES+1)-1:0] o_count,
  input o_last
);
  localparam int SIZE = 6;

  always @* assume (~clear & ~flush & ((tkeep & (tkeep + 1)) == 0));
  wire [BYTES-1:0] bytes_in, bytes_out;
  first_bits #(.COUNT(BYTES), .SIZE(8)) bits_in (.items(tdata), .bits(bytes_in));
  first_bits #(.COUNT(BYTES), .SIZE(8)) bits_out (.items(o_data), .bits(bytes_out));

  // The byte that is followed
  (* anyconst *) wire [$clog2(BYTES)-1:0] place;
  wire taken = tvalid & tready, arrives = taken & tkeep[0], closes = taken & ~tkeep[0] & tlast;
  logic [SIZE-1:0] entering;
  always @* begin
    entering = 0;
    if (taken)
      for (int n = 0; n < BYTES; n++) if (tkeep[n]) entering = n + 1;
  end
  wire [SIZE-1:0] leaving = o__valid & o__ready ? o_count : 0;
  wire [SIZE-1:0] held, ahead_later;
  wire item_later, chosen, followed;
  follow #(.ITEM(1), .SIZE(SIZE), .CAPACITY(2 * BYTES)) byte_of_packet (
    .candidate(taken & place < entering), .ahead_of_new(held + place), .new_item(bytes_in[place]),
    .active(), .ahead(), .item(), .*
  );

  // The end of its packet may come after it, in a transfer without bytes: pending until then
  reg pending, byte_ends, ended_before = 1;
  always @(posedge clk) begin
    if (chosen) begin
      pending <= place + 1 == entering & ~tlast;
      byte_ends <= place + 1 == entering & tlast;
    end else if (pending & (arrives | closes)) begin
      pending <= 0;
      byte_ends <= closes;
    end
    ended_before <= rst | (o__valid & o__ready ? o_last : ended_before);
  end

  reg [3:0] packets;  // inside
  wire leaves_last = o__valid & o__ready & o_last;
  always @(posedge clk) packets <= rst ? 0 : packets + (taken & tlast) - leaves_last;
  always @* if (started & ~rst) begin
    no_packet_lost: assert (packets <= 2);
    no_packet_made: assert (~leaves_last | packets != 0);
    if (o__valid) begin
      empty: assert (o_count != 0 || (o_last && ended_before));
      clean: assert ((bytes_out >> o_count) == 0);
      if (followed & ahead_later < o_count) begin
        in_order: assert (bytes_out[ahead_later] == item_later);
        packet_ends: assert (~pending && byte_ends == (o_last & ahead_later + 1 == o_count));
      end
    end
  end
endmodule
