// Every job that is not forgotten has a record, in the order of the starts, with the number of the job and what was found of it.
//
// One job is chosen freely and followed from its start until its record is taken, through places to which all jobs come, and
// those to which jobs of some modes do.
module job_ledger_rules #(
  parameter int DEPTH,
  parameter int NUMBER_BITS,
  parameter bit [15:0] CODED, SCALED  // sets of modes
) (
  input clk, rst, started,
  input start, abort, left, keeps, take,
  input [3:0] mode,
  input ended, room,
  input [$clog2(DEPTH+1)-1:0] waiting,
  input [NUMBER_BITS-1:0] job,
  // at a place: a job leaves it, and an error is found there; the error in the record that is shown
  input input_ends, front_ends, scales_ends, windows_ends,
  input early_last_found, nonfinite_found, bad_scale_found, scale_surplus_found,
  input early_last, nonfinite, bad_scale, scale_surplus
);
  localparam int SIZE = $clog2(DEPTH + 1);

  // All jobs
  reg [SIZE-1:0] under = 0, records = 0;
  reg [NUMBER_BITS-1:0] number = 0;
  wire taken = records != 0 & (take | ~keeps);
  always @* assume (room || !start);
  always @(posedge clk) begin
    under <= rst | abort ? 0 : under + start - ended;
    records <= rst ? 0 : records + ended - taken;
    number <= rst ? 0 : number + start;
  end
  always @* if (started & ~rst) begin
    as_many_records: assert (waiting == records);
    as_much_room: assert (room == (under + records != DEPTH));
    nothing_from_nowhere: assert (!ended | (under != 0 & ~abort));
  end

  // The job that is followed
  (* anyseq *) wire choose;
  reg follow = 0, over;
  reg [SIZE-1:0] ahead, ending_before;  // records, and jobs, that go before it
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
    end else begin
      over <= over | ends;
      ahead <= ahead - taken;
      ending_before <= ending_before - (ended & ~over & ~ends);
    end
  end
  always @* if (started & ~rst & follow & shown) begin
    there: assert (waiting != 0);
    numbered: assert (job == its_number);
  end

  wire result_here, input_here, front_here, scales_here, windows_here;
  ledger_place #(.SIZE(SIZE)) result (
    .comes(start), .ends(left), .found(1'b0), .flag(1'b0), .here(result_here), .*
  );
  ledger_place #(.SIZE(SIZE)) entrance (
    .comes(start), .ends(input_ends), .found(early_last_found), .flag(early_last), .here(input_here), .*
  );
  ledger_place #(.SIZE(SIZE)) front (
    .comes(start & CODED[mode]), .ends(front_ends), .found(nonfinite_found), .flag(nonfinite), .here(front_here), .*
  );
  ledger_place #(.SIZE(SIZE)) scales (
    .comes(start & SCALED[mode]), .ends(scales_ends), .found(bad_scale_found), .flag(bad_scale), .here(scales_here), .*
  );
  ledger_place #(.SIZE(SIZE)) windows (
    .comes(start & SCALED[mode]), .ends(windows_ends), .found(scale_surplus_found), .flag(scale_surplus), .here(windows_here), .*
  );
  always @* begin
    // Values have passed the front, and scales their join, when the last word of the result leaves
    assume (!(follow & ~over & ~result_here & (front_here | scales_here)));
  end
  always @* if (started & ~rst & ends) all_known: assert (!(result_here | input_here | windows_here));
endmodule
