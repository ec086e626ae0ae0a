// The beats of a job and the blocks of a row go down by what a tile takes, and what is told of them a tile ahead is true.
module tile_counts #(
  parameter bit [15:0] MODES,   // of the jobs
  parameter bit [15:0] TILES,   // with tiles of several blocks
  parameter bit [15:0] BLOCKS   // with whole blocks
) (
  input clk, rst, started,
  input job_ready, job_valid,
  input [3:0] job_mode, mode,
  input [25:0] job_beats, job_row_beats,
  input busy, step, wide, many,
  input [2:0] blocks,           // of the tile
  input [25:0] row, left,
  input [26:0] beats
);
  wire [26:0] whole = {{1'b0, job_beats[25:3]} + {23'd0, |job_beats[2:0]}, 3'd0};
  wire [23:0] blocks_left = beats[26:3];
  reg known = 0;
  reg [25:0] row_next, left_next;
  reg [26:0] beats_next;
  always @* if (job_valid) assume (MODES[job_mode] && job_beats != 0 && job_row_beats != 0);
  always @(posedge clk) begin
    known <= 1;
    beats_next <= job_ready ? (BLOCKS[job_mode] ? whole : {1'b0, job_beats}) : step ? beats - {21'd0, blocks, 3'd0} : beats;
    row_next <= job_ready ? job_row_beats : row;
    left_next <= job_ready ? job_row_beats : !step ? left : wide ? left - 4 : row;
  end
  always @* begin
    if (known) counts: assert (beats == beats_next && row == row_next && left == left_next);
    if (started & ~rst & busy & TILES[mode]) begin
      tile: assert (blocks != 0 && blocks <= 4 && blocks <= left && blocks <= blocks_left);
      whole_blocks: assert (beats[2:0] == 0 && row != 0);
      row_ahead: assert (left != 0 && wide == (left > 4));
      // Of 5 to 7 blocks, which are no tile either, it may say anything.
      job_ahead: assert (blocks_left != 0 && (many ? blocks_left > 4 : blocks_left < 8));
    end
  end
endmodule
