// What is left of a job, of a row and of a row's scale goes down by what a window of scales takes; a job sets it anew. Of the
// beats behind the last window nothing is said but that there are none.
//
// That holds whatever the registers contain.
module window_counts #(
  parameter int PORT_BEATS,
  parameter int PLACES,          // of a window
  parameter bit [15:0] STRIPS,   // modes with a window for each strip of 8 rows
  parameter bit [15:0] BLOCKS    // modes with whole blocks
) (
  input clk, rst,
  input job_ready,
  input [3:0] job_mode,
  input [25:0] job_beats, job_row_beats, job_channel_rows,
  input go, complete, is_final,
  input [$clog2(PLACES+1)-1:0] room,
  input [25:0] rows_left, row_period,
  input [26:0] later_beats,
  input [28:0] rest, row_places, window_beats
);
  wire in_strips = STRIPS[job_mode], narrow = PORT_BEATS > 1 & ~in_strips & job_row_beats < 8;
  wire [26:0] whole = {{1'b0, job_beats[25:3]} + {23'd0, |job_beats[2:0]}, 3'd0};
  wire [29:0] beats = BLOCKS[job_mode] ? {3'd0, whole} : {4'd0, job_beats};
  wire [29:0] window = in_strips ? {1'd0, job_row_beats, 3'd0} : PORT_BEATS;
  wire [28:0] of_channel = job_channel_rows * {26'd0, job_row_beats[2:0]};
  wire [29:0] later = {3'd0, later_beats} - {1'd0, window_beats};
  wire none_later = later[29] | later == 0;
  wire begins = rest < 29'(room);
  wire [28:0] space = 29'(room) - rest;
  reg known = 0, final_next;
  reg [25:0] rows_next, period_next;
  reg [26:0] later_next;
  reg [28:0] rest_next, places_next, window_next;
  always @(posedge clk) begin
    known <= 1;
    later_next <= job_ready ? 27'(beats - window) : go & complete ? later[26:0] : later_beats;
    final_next <= ~rst & (job_ready ? beats <= window : go & complete ? none_later : is_final);
    rest_next <= job_ready ? 0 : !go ? rest : !begins ? rest - 29'(room) : row_places < space ? 0 : row_places - space;
    rows_next <= job_ready ? 0 : !(go & begins) ? rows_left : (rows_left == 0 ? row_period : rows_left) - 1;
    places_next <= !job_ready ? row_places : in_strips ? 29'(job_channel_rows) : narrow ? of_channel : 29'(job_row_beats);
    period_next <= !job_ready ? row_period : in_strips | narrow ? 1 : job_channel_rows;
    window_next <= job_ready ? window[28:0] : window_beats;
  end
  always @* if (known) begin
    rows: assert (rest == rest_next && rows_left == rows_next);
    beats_behind: assert (later_beats == later_next && is_final == final_next);
    settings: assert (row_places == places_next && row_period == period_next && window_beats == window_next);
  end
endmodule
