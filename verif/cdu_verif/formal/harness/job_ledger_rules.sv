// Every job that is not forgotten has a record, in the order of the starts, with its number and what was found of it.
//
// One job is chosen freely and followed from its start until its record is taken, through places to which all jobs come, and
// those to which jobs of some modes do.
module job_ledger_rules #(
  parameter int DEPTH,
  parameter int NUMBER_BITS,
  parameter bit [15:0] BUILT, CODED, SCALED,  // sets of modes
  parameter bit ALL_CODED, ALL_SCALED,        // they are those that are built
  parameter bit NUMBERS,                      // what is proven beside the order of records: their numbers,
  parameter bit [3:0] PLACES                  // what is found at places
) (
  input clk, rst, started,
  input start, abort, left, keeps, take,
  input [3:0] mode,
  input ended, room,
  input [$clog2(DEPTH+1)-1:0] waiting,
  input [NUMBER_BITS-1:0] job,
  // at a place: a job leaves it, and an error is found there; the error in the record that is shown, and in all entries
  input input_ends, front_ends, scales_ends, windows_ends,
  input early_last_found, nonfinite_found, bad_scale_found, scale_surplus_found,
  input early_last, nonfinite, bad_scale, scale_surplus,
  input [DEPTH-1:0] early_last_column, nonfinite_column, bad_scale_column, scale_surplus_column,
  // of the device: entries, and jobs at the places
  input [DEPTH-1:0] due,
  input [$clog2(DEPTH+1)-1:0] oldest, ending, following,
  input [$clog2(DEPTH+1)-1:0] result_distance, input_distance, front_distance, scales_distance, windows_distance
);
  localparam int SIZE = $clog2(DEPTH + 1);

  // Numbers of jobs under way and of records
  reg [SIZE-1:0] under = 0, records = 0;
  reg [NUMBER_BITS-1:0] number = 0;
  wire taken = records != 0 & (take | ~keeps);
  always @* assume (!start || (room && BUILT[mode]));
  always @(posedge clk) begin
    under <= rst | abort ? 0 : under + start - ended;
    records <= rst ? 0 : records + ended - taken;
    number <= rst ? 0 : number + start;
  end
  wire [SIZE-1:0] waiting_entries = ending - oldest, entries_under = following - ending;
  always @* if (started & ~rst) begin
    as_many_records: assert (waiting == records);
    as_much_room: assert (room == (under + records != DEPTH));
    nothing_from_nowhere: assert (!ended | (under != 0 & ~abort));
    entries: assert (waiting_entries == records && entries_under == under && under <= DEPTH && records <= DEPTH - under);
  end

  // Coded jobs among those that have not ended, the oldest one first, and their number
  reg [DEPTH-1:0] coded = 0;
  logic [SIZE-1:0] coded_under;
  always @(posedge clk)
    coded <= rst | abort ? 0 : ((coded | DEPTH'(start & CODED[mode]) << under) >> ended);
  always @* begin
    coded_under = under;
    for (int n = 0; n < DEPTH; n++)
      if (!ALL_CODED && n < under && !coded[n]) coded_under = coded_under - 1;
  end

  // The job that is followed
  (* anyseq *) wire choose;
  reg follow = 0, over;
  reg [SIZE-1:0] ahead, ending_before;  // records and jobs that go before it; jobs that end before it
  reg [SIZE-1:0] entry;
  reg [NUMBER_BITS-1:0] its_number;
  wire chosen = start & choose & ~follow & ~abort;
  wire ends = follow & ~over & ended & ending_before == 0;
  wire shown = over & ahead == 0;
  always @(posedge clk) begin
    if (rst) follow <= 0;
    else if (chosen) follow <= 1;
    else if (follow & ((abort & ~over) | (shown & taken))) follow <= 0;
    if (chosen) begin
      over <= 0;
      ahead <= under + records - taken;
      ending_before <= under - ended;
      its_number <= number;
      entry <= following;
    end else begin
      over <= over | ends;
      ahead <= ahead - taken;
      ending_before <= ending_before - (ended & ~over & ~ends);
    end
  end
  wire [SIZE-1:0] its_place = following - entry, entries_before = entry - oldest, unended = entry - ending;
  always @* if (started & ~rst & follow) begin
    in_order: assert (ahead == entries_before && its_place <= under + records);
    if (over) ended_before: assert (ahead < records);
    else ends_later: assert (unended == ending_before && ending_before < under);
    if (shown) there: assert (waiting != 0);
    if (NUMBERS & shown) numbered: assert (job == its_number);
  end

  wire result_here, input_here, front_here, scales_here, windows_here;
  ledger_place #(.SIZE(SIZE), .WAITED(1'b1), .COUNTED(1'b1), .PROVEN(1'b0)) result (
    .comes(start), .ends(left), .found(1'b0), .flag(1'b0), .in_entry(1'b0), .distance(result_distance),
    .here(result_here), .*
  );
  ledger_place #(.SIZE(SIZE), .WAITED(1'b1), .COUNTED(1'b1), .PROVEN(PLACES[0])) entrance (
    .comes(start), .ends(input_ends), .found(early_last_found), .flag(early_last),
    .in_entry(early_last_column[entry[SIZE-2:0]]), .distance(input_distance), .here(input_here), .*
  );
  ledger_place #(.SIZE(SIZE), .WAITED(1'b0), .COUNTED(ALL_CODED), .PROVEN(PLACES[1])) front (
    .comes(start & CODED[mode]), .ends(front_ends), .found(nonfinite_found), .flag(nonfinite),
    .in_entry(nonfinite_column[entry[SIZE-2:0]]), .distance(front_distance), .here(front_here), .under(coded_under),
    .*
  );
  ledger_place #(.SIZE(SIZE), .WAITED(1'b0), .COUNTED(ALL_SCALED), .PROVEN(PLACES[2])) scales (
    .comes(start & SCALED[mode]), .ends(scales_ends), .found(bad_scale_found), .flag(bad_scale),
    .in_entry(bad_scale_column[entry[SIZE-2:0]]), .distance(scales_distance), .here(scales_here), .*
  );
  ledger_place #(.SIZE(SIZE), .WAITED(1'b1), .COUNTED(ALL_SCALED), .PROVEN(PLACES[3])) windows (
    .comes(start & SCALED[mode]), .ends(windows_ends), .found(scale_surplus_found), .flag(scale_surplus),
    .in_entry(scale_surplus_column[entry[SIZE-2:0]]), .distance(windows_distance), .here(windows_here), .*
  );
  // Jobs are due until they leave the windows, where all jobs have scales
  logic [DEPTH-1:0] expected_due;
  always @* begin
    expected_due = 0;
    for (int n = 1; n <= DEPTH; n++)
      if (n <= windows_distance) expected_due[(following - n) % DEPTH] = 1;
  end
  always @* if (ALL_SCALED & started & ~rst) are_due: assert (due == expected_due);
  // Values have passed the front, and scales their join, when the last word of the result leaves
  always @* assume (!(follow & ~over & ~result_here & (front_here | scales_here)));
  always @* if (started & ~rst & follow & over) all_known: assert (!(result_here | input_here | windows_here));
endmodule
