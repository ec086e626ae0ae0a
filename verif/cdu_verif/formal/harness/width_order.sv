// Bytes of words leave once, in order; words are full, a job's last word ends with its last byte.
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
  always @* if (i__valid) assume (i_count >= 1 && i_count <= I_BYTES && (bytes_in >> i_count) == 0);

  (* anyconst *) wire [3:0] place;
  reg offered_before;
  always @(posedge clk) offered_before <= i__valid & ~i__ready & ~rst;
  wire enters = i__valid & ~offered_before & ~rst;
  wire [SIZE-1:0] amount = PARTIAL || i_last ? i_count : I_BYTES;
  wire [SIZE-1:0] entering = enters ? amount : 0, leaving = o__valid & o__ready ? o_count : 0;

  wire [SIZE-1:0] held, ahead;
  wire [1:0] item;
  wire active;
  follow #(.ITEM(2), .SIZE(SIZE), .CAPACITY((I_BYTES > O_BYTES ? I_BYTES : O_BYTES) + I_BYTES)) byte_of_word (
    .candidate(enters & place < entering), .ahead_of_new(held + place),
    .new_item({i_last & place + 1 == entering, bytes_in[place]}), .chosen(), .followed(), .ahead_later(), .item_later(), .*
  );
  always @* if (started & ~rst & o__valid) begin
    full: assert (o_count >= 1 && o_count <= O_BYTES && (o_last || o_count == O_BYTES));
    clean: assert ((bytes_out >> o_count) == 0);
    if (active & ahead < o_count) begin
      in_order: assert (bytes_out[ahead] == item[0]);
      job_ends: assert (item[1] == (o_last & ahead + 1 == o_count));
    end
  end
endmodule
