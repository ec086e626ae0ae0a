// Rows of 8 coefficients in, rows of 8 samples out; the first value of a row is in the highest bits.
module bench;
  bit clock, reset_n;
  always #5 clock = ~clock;

  logic [95:0] stimulus[`ROWS];
  int sent, received, file;
  longint cycle, first;

  wire slave_tready, master_tvalid;
  wire [71:0] master_tdata;
  // The core takes a row whenever tvalid was high in the cycle before, whatever tready says: only a ready core is offered one,
  // and data follow tvalid by a cycle. Offered together with tvalid, as AXI-Stream has it, the first row would be lost.
  wire slave_tvalid = reset_n && slave_tready && sent < `ROWS;
  logic [95:0] row;
  always @(posedge clock) if (slave_tvalid) row <= stimulus[sent];
  wide_axi_stream_wrappered_1r1c_idct dut (
      .clock, .reset_n, .slave_tdata(row), .slave_tvalid, .slave_tready, .master_tdata, .master_tvalid,
      .master_tready(1'b1));

  initial begin
    $readmemh("stimulus.hex", stimulus);
    file = $fopen("result.hex", "w");
    repeat (4) @(posedge clock);
    reset_n <= 1;
  end

  always @(posedge clock) begin
    cycle <= cycle + 1;
    if (slave_tvalid) begin
      if (sent == 0) first <= cycle;
      sent <= sent + 1;
    end
    if (reset_n && master_tvalid && received < `ROWS) begin
      $fdisplay(file, "%h", master_tdata);
      received <= received + 1;
    end
    if (received == `ROWS || cycle == 16 * `ROWS + 1000) begin
      $display("cycles %0d", cycle - first);
      $finish;
    end
  end
endmodule
