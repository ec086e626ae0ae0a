// Words that leave the value side belong to its jobs in their order: the last one closes as many beats as its job says,
// whatever the input, and words with tags have the mode and the bank of their job. The first or the second job is followed.
module jobs_of_values #(
  parameter int COUNT_BITS,
  parameter bit [15:0] MODES,   // of the jobs
  parameter bit [15:0] BLOCKS,  // with whole blocks
  parameter bit [15:0] TILES,   // with whole strips of tiles
  parameter bit TAGGED          // whether words have modes and banks
) (
  input clk, rst,
  input job_valid, job_ready, job_bank,
  input [3:0] job_mode,
  input [25:0] job_beats, job_row_beats, job_channel_rows,
  input o_valid, o_ready, o_ends, o_bank, o_last,
  input [3:0] o_mode,
  input [COUNT_BITS-1:0] o_count
);
  (* anyconst *) reg chosen;
  reg [1:0] entered = 0, left = 0;
  reg [3:0] mode = 0;
  reg bank = 0;
  reg [25:0] beats = 0, number = 0;
  always @* if (job_valid) begin
    assume (MODES[job_mode] & job_beats != 0 && job_row_beats != 0 && job_channel_rows != 0);
    if (BLOCKS[job_mode] | TILES[job_mode]) assume (job_beats[2:0] == 0);
    // The search takes tiles with one or two beats in a row.
    if (TILES[job_mode]) assume (job_row_beats == 1 || job_row_beats == 2 && !job_beats[3]);
  end
  always @(posedge clk) if (!rst) begin
    if (job_valid & job_ready) begin
      if (~&entered) entered <= entered + 1;
      if (entered == chosen) begin
        mode <= job_mode;
        bank <= job_bank;
        beats <= job_beats;
      end
    end
    if (o_valid & o_ready) begin
      if (o_ends & o_last & ~&left) left <= left + 1;
      if (left == chosen) number <= number + o_count;
    end
  end
  always @* if (!rst & o_valid & left == chosen) begin
    whole: assert (entered > chosen);
    if (TAGGED) tag: assert (o_mode == mode && o_bank == bank);
    count: assert (o_count != 0);
    length: assert ((o_ends & o_last) == (number + o_count >= beats) && number + o_count <= beats);
  end
endmodule
