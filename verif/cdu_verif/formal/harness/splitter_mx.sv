// The splitter in mode mx: byte `place` of the payload of job `number`, both chosen freely, is that byte of the job's slices.
//
// A slice has ROWS rows, the last one of a job what is left, and the scales of the blocks that begin in them. As in
// splitter_order.sv, zeros take the place of what is missing, the rest of what is too long leaves nowhere, and bytes are
// followed by their first bit.
module splitter_mx #(
  parameter int SLICE_BYTES,
  parameter int WORD_BYTES,
  parameter int ROWS,
  parameter int BLOCK_ROWS,
  parameter int MX,
  parameter int FORMATS,
  parameter int FORMAT_BITS,
  parameter [4*FORMATS-1:0] CODE_BITS,  // by format
  parameter int BEATS_BITS,
  parameter int LANES
) (
  input clk, rst, started,
  input job__valid, job__ready,
  input [3:0] job_mode,
  input [FORMAT_BITS-1:0] job_format,
  input [BEATS_BITS-1:0] job_beats,
  input i__valid, i__ready,
  input [8*WORD_BYTES-1:0] i_data,
  input [$clog2(WORD_BYTES+1)-1:0] i_count,
  input i_last,
  input mx__valid, mx__ready, mx_ends, mx_last, mx_heads,
  input [3:0] mx_mode, mx_rows,
  input [FORMAT_BITS-1:0] mx_format,
  input [$clog2(SLICE_BYTES+1)-1:0] mx_count,
  input [8*SLICE_BYTES-1:0] mx_data,
  input [LANES-1:0] o_valid
);
  localparam int JOB_BITS = 4;    // of the number of a job, counted from reset
  localparam int PLACE_BITS = 9;  // of the number of a byte in its job

  (* anyconst *) wire [JOB_BITS-1:0] number;
  (* anyconst *) wire [PLACE_BITS-1:0] place;

  // The payload that comes: words up to one with last are a job's
  wire [WORD_BYTES-1:0] bytes_in;
  first_bits #(.COUNT(WORD_BYTES), .SIZE(8)) bits_in (.items(i_data), .bits(bytes_in));
  always @* if (i__valid) assume (i_count <= WORD_BYTES && (i_data >> 8 * i_count) == 0);
  wire enters = i__valid & i__ready;
  reg [JOB_BITS-1:0] job_in;
  reg [PLACE_BITS-1:0] place_in;
  reg came, over, value;  // the byte has come; its job has ended; its bit
  wire chosen = enters & job_in == number & place >= place_in & place < place_in + i_count;
  always @(posedge clk) begin
    job_in <= rst ? 0 : job_in + (enters & i_last);
    place_in <= rst | (enters & i_last) ? 0 : place_in + (enters ? i_count : 0);
    came <= ~rst & (came | chosen);
    over <= ~rst & (over | (enters & i_last & job_in == number));
    if (chosen) value <= bytes_in[place - place_in];
  end

  // The jobs
  wire begins = job__valid & job__ready;
  reg [JOB_BITS-1:0] job_begun;
  reg [BEATS_BITS-1:0] beats;
  reg [FORMAT_BITS-1:0] format;
  always @* if (job__valid) assume (job_mode == MX && job_format < FORMATS && job_beats != 0 && job_beats % BLOCK_ROWS == 0);
  always @(posedge clk) begin
    job_begun <= rst ? 0 : job_begun + begins;
    if (begins & job_begun == number) begin
      beats <= job_beats;
      format <= job_format;
    end
  end

  // Bytes, beats and jobs that have left
  wire leaves = mx__valid & mx__ready;
  reg [JOB_BITS-1:0] job_out;
  reg [PLACE_BITS-1:0] place_out;
  reg [BEATS_BITS-1:0] beats_out;  // of this job
  always @(posedge clk) begin
    job_out <= rst ? 0 : job_out + (leaves & mx_last);
    place_out <= rst | (leaves & mx_last) ? 0 : place_out + (leaves ? mx_count : 0);
    beats_out <= rst | (leaves & mx_last) ? 0 : beats_out + (leaves ? mx_rows : 0);
  end

  wire [SLICE_BYTES-1:0] bytes_out;
  first_bits #(.COUNT(SLICE_BYTES), .SIZE(8)) bits_out (.items(mx_data), .bits(bytes_out));
  wire [BEATS_BITS-1:0] beats_left = beats - beats_out;
  wire [3:0] rows = beats_left < ROWS ? beats_left : ROWS;
  wire heads = beats_out % BLOCK_ROWS == 0;
  wire [7:0] scales = heads ? (rows + BLOCK_ROWS - 1) / BLOCK_ROWS : 0;
  wire [3:0] code_bits = CODE_BITS[4*format +: 4];
  always @* if (started & ~rst) begin
    past_lanes: assert (o_valid == 0);
    if (mx__valid) begin
      whole: assert (mx_ends && mx_mode == MX);
      clean: assert ((bytes_out >> mx_count) == 0);
      if (job_out == number) begin
        begun: assert (job_begun > number);
        tags: assert (mx_format == format && mx_heads == heads);
        rows_of_slice: assert (mx_rows == rows && mx_last == (beats_left <= ROWS));
        length: assert (mx_count == rows * code_bits + scales);
        if (place >= place_out && place < place_out + mx_count) begin
          in_order: assert (bytes_out[place - place_out] == (came & value));
          not_early: assert (came | over);
        end
      end
    end
  end
endmodule
