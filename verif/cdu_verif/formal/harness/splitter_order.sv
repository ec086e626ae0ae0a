// The splitter: byte `place` of the payload of job `number`, both chosen freely, is that byte of the job's slices.
//
// Where a payload ends early zeros take the place of what is missing; where it is too long the rest leaves nowhere. A block is
// as long as its own mask, mode and rows say, a job as long as its beats say, and the lanes take turns block by block. The
// counts of a job start again with the next one, so that no fault in one job can hide behind another. Bytes are followed by
// their first bit.
module splitter_order #(
  parameter int LANES,
  parameter int SLICE_BYTES,
  parameter int WORD_BYTES,
  parameter int ROW_VALUES,
  parameter int BLOCK_SIDE,
  parameter int MASK_BYTES,
  parameter [15:0] MODES,      // bit n: jobs of mode n come
  parameter [15:0] ZVC_MODES,  // bit n: blocks of mode n begin with a mask
  parameter int BRC,
  parameter int BEATS_BITS
) (
  input clk, rst, started,
  input job__valid, job__ready,
  input [3:0] job_mode,
  input job_bank,
  input [BEATS_BITS-1:0] job_beats,
  input i__valid, i__ready,
  input [8*WORD_BYTES-1:0] i_data,
  input [$clog2(WORD_BYTES+1)-1:0] i_count,
  input i_last,
  // Ports of the lanes
  input [LANES-1:0] o_valid, o_ready, o_ends, o_last, o_bank,
  input [LANES-1:0][3:0] o_mode, o_rows,
  input [LANES-1:0][$clog2(SLICE_BYTES+1)-1:0] o_count,
  input [LANES-1:0][8*SLICE_BYTES-1:0] o_data
);
  localparam int JOB_BITS = 4;    // of the number of a job, counted from reset
  localparam int PLACE_BITS = 9;  // of the number of a byte in its job
  localparam int TURN_BITS = LANES > 1 ? $clog2(LANES) : 1;
  localparam int COUNT_BITS = $clog2(SLICE_BYTES + 1);
  localparam int BLOCK_VALUES = ROW_VALUES * BLOCK_SIDE;

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
  reg [3:0] mode;
  reg bank;
  always @* if (job__valid) begin
    assume (MODES[job_mode] && job_beats != 0);
    assume (!ZVC_MODES[job_mode] || job_beats % BLOCK_SIDE == 0);
  end
  always @(posedge clk) begin
    job_begun <= rst ? 0 : job_begun + begins;
    if (begins & job_begun == number) begin
      beats <= job_beats;
      mode <= job_mode;
      bank <= job_bank;
    end
  end

  // The slice of the lane whose turn it is
  reg [TURN_BITS-1:0] turn;
  wire block_ends, is_last, slice_bank;
  wire [3:0] slice_mode, rows;
  wire [COUNT_BITS-1:0] count;
  wire [8*SLICE_BYTES-1:0] data;
  choice #(.WIDTH(1), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) ends_of (.values(o_ends), .index(turn), .value(block_ends));
  choice #(.WIDTH(1), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) last_of (.values(o_last), .index(turn), .value(is_last));
  choice #(.WIDTH(1), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) bank_of (.values(o_bank), .index(turn), .value(slice_bank));
  choice #(.WIDTH(4), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) mode_of (.values(o_mode), .index(turn), .value(slice_mode));
  choice #(.WIDTH(4), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) rows_of (.values(o_rows), .index(turn), .value(rows));
  choice #(.WIDTH(COUNT_BITS), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) count_of (.values(o_count), .index(turn), .value(count));
  choice #(.WIDTH(8*SLICE_BYTES), .COUNT(LANES), .INDEX_BITS(TURN_BITS)) data_of (.values(o_data), .index(turn), .value(data));
  wire offered = o_valid[turn];
  wire leaves = offered & o_ready[turn];
  wire job_ends = block_ends & is_last;

  // Length of the block
  logic [7:0] mask_length;
  always @* begin
    mask_length = MASK_BYTES;
    for (int n = 0; n < BLOCK_VALUES; n++) mask_length = mask_length + data[n];
  end
  reg [7:0] in_block, length_before;  // bytes of the block that have left; its length
  wire [7:0] row_bytes = slice_mode == BRC ? 1 : ROW_VALUES;
  wire [7:0] first_length = ZVC_MODES[slice_mode] ? mask_length : rows * row_bytes;
  wire [7:0] length = in_block == 0 ? first_length : length_before;
  wire [7:0] rest = length - in_block;

  // Bytes, beats and jobs that have left
  reg [JOB_BITS-1:0] job_out;
  reg [PLACE_BITS-1:0] place_out;
  reg [BEATS_BITS-1:0] beats_out;  // of the blocks of this job
  always @(posedge clk) begin
    turn <= rst ? 0 : ~(leaves & block_ends) ? turn : turn == LANES - 1 ? 0 : turn + 1;
    job_out <= rst ? 0 : job_out + (leaves & job_ends);
    place_out <= rst | (leaves & job_ends) ? 0 : place_out + (leaves ? count : 0);
    beats_out <= rst | (leaves & job_ends) ? 0 : beats_out + (leaves & block_ends ? rows : 0);
    in_block <= rst | (leaves & block_ends) ? 0 : in_block + (leaves ? count : 0);
    if (leaves) length_before <= length;
  end

  wire [SLICE_BYTES-1:0] bytes_out;
  first_bits #(.COUNT(SLICE_BYTES), .SIZE(8)) bits_out (.items(data), .bits(bytes_out));
  wire [BEATS_BITS-1:0] beats_left = beats - beats_out;
  always @* if (started & ~rst) begin
    in_turn: assert ((o_valid & ~(1 << turn)) == 0);
    if (offered) begin
      cut: assert (rest != 0 && count == (rest < SLICE_BYTES ? rest : SLICE_BYTES) && block_ends == (rest <= SLICE_BYTES));
      clean: assert ((bytes_out >> count) == 0);
      if (job_out == number) begin
        begun: assert (job_begun > number);
        tags: assert (slice_mode == mode && slice_bank == bank);
        rows_of_block: assert (rows == (beats_left > BLOCK_SIDE ? BLOCK_SIDE : beats_left));
        last_of_job: assert (is_last == (beats_left <= BLOCK_SIDE));
        if (place >= place_out && place < place_out + count) begin
          in_order: assert (bytes_out[place - place_out] == (came & value));
          not_early: assert (came | over);
        end
      end
    end
  end
endmodule
