// Bytes of words leave once, in order, each in its own job; words are full but for the last one of a job, and jobs end once.
//
// The last word of a job may be empty, with words before it or without.
//
// A word enters when it is offered: without a register a part of it may leave before it is accepted.
module width_order #(
  parameter int I_BYTES,
  parameter int O_BYTES,
  parameter bit PARTIAL  // words enter with as many bytes as they count, else they are full, but for the last one of a job
) (
  input clk, rst, started,
  input i__valid, i__ready, o__valid, o__ready,
  input [8*I_BYTES-1:0] i_data,
  input [$clog2(I_BYTES+1)-1:0] i_count,
  input i_last,
  input [8*O_BYTES-1:0] o_data,
  input [$clog2(O_BYTES+1)-1:0] o_count,
  input o_last
);
  localparam int SIZE = 6;

  wire [I_BYTES-1:0] bytes_in;
  wire [O_BYTES-1:0] bytes_out;
  first_bits #(.COUNT(I_BYTES), .SIZE(8)) bits_in (.items(i_data), .bits(bytes_in));
  first_bits #(.COUNT(O_BYTES), .SIZE(8)) bits_out (.items(o_data), .bits(bytes_out));
  always @* if (i__valid) assume ((i_count >= 1 || i_last) && i_count <= I_BYTES && (bytes_in >> i_count) == 0);

  (* anyconst *) wire [3:0] place;
  reg offered_before;
  always @(posedge clk) offered_before <= i__valid & ~i__ready & ~rst;
  wire enters = i__valid & ~offered_before & ~rst;
  wire [SIZE-1:0] amount = PARTIAL || i_last ? i_count : I_BYTES;
  wire [SIZE-1:0] entering = enters ? amount : 0, leaving = o__valid & o__ready ? o_count : 0;

  wire [SIZE-1:0] held, ahead;
  wire [2:0] item;  // the job of the byte, and the byte
  wire active;
  follow #(.ITEM(3), .SIZE(SIZE), .CAPACITY((I_BYTES > O_BYTES ? I_BYTES : O_BYTES) + I_BYTES)) byte_of_word (
    .candidate(enters & place < entering), .ahead_of_new(held + place),
    .new_item({jobs_in, bytes_in[place]}), .chosen(), .followed(), .ahead_later(), .item_later(), .*
  );

  reg [1:0] jobs_in, jobs_out;  // that have ended, modulo 4
  wire [1:0] jobs_inside = jobs_in + (enters & i_last) - jobs_out;  // whose end has entered and has not left
  always @(posedge clk) begin
    jobs_in <= rst ? 0 : jobs_in + (enters & i_last);
    jobs_out <= rst ? 0 : jobs_out + (o__valid & o__ready & o_last);
  end
  always @* if (started & ~rst) begin
    no_end_lost: assert (jobs_inside <= 2);
    if (o__valid) begin
      full: assert (o_count <= O_BYTES && (o_last || o_count == O_BYTES));
      clean: assert ((bytes_out >> o_count) == 0);
      no_end_made: assert (~o_last | jobs_inside != 0);
      if (active & ahead < o_count) begin
        in_order: assert (bytes_out[ahead] == item[0]);
        own_job: assert (item[2:1] == jobs_out);
      end
      // The bytes of a job leave before its end or with it.
      if (active & o_last) none_behind: assert (ahead < o_count || item[2:1] != jobs_out);
    end
  end
endmodule
