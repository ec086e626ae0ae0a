// Rows of 8 samples in, two coefficients per cycle out, in zigzag order. The first value of a row is in the highest bits.
module bench;
  bit clock, fast_clock, reset_n, fast_reset_n;
  // The second clock is 2.2 times as fast.
  always #11 clock = ~clock;
  always #5 fast_clock = ~fast_clock;

  logic [63:0] stimulus[`ROWS];
  int sent, received, file;
  longint cycle, first;

  wire [63:0] row = sent < `ROWS ? stimulus[sent] : '0;
  // The first value of the core's array is in the lowest bits.
  wire [63:0] di = {<<8{row}};
  wire di_valid = reset_n && sent < `ROWS;
  wire di_hold, q_valid;
  wire [29:0] q;
  dct_2d dut (
      .di, .di_valid, .di_hold, .di_cnt(sent[2:0]), .q, .q_valid, .q_hold(1'b0), .q_cnt(),
      .clk(clock), .resetn(reset_n), .clk_x22(fast_clock), .resetn_x22(fast_reset_n));

  initial begin
    $readmemh("stimulus.hex", stimulus);
    file = $fopen("result.hex", "w");
    repeat (8) @(posedge clock);
    reset_n <= 1;
  end
  always @(posedge fast_clock) fast_reset_n <= reset_n;

  always @(posedge clock) begin
    cycle <= cycle + 1;
    if (di_valid && !di_hold) begin
      if (sent == 0) first <= cycle;
      sent <= sent + 1;
    end
    if (q_valid) begin
      $fdisplay(file, "%h", {q[14], q[14:0], q[29], q[29:15]});
      received <= received + 1;
    end
    if (received == 4 * `ROWS || cycle == 32 * `ROWS + 1000) begin
      $display("cycles %0d", cycle - first);
      $finish;
    end
  end
endmodule
