// Rows of 8 samples in, one per cycle; rows of 8 coefficients out. The first value of a row is in the highest bits.
module bench;
  bit clock, reset_n;
  always #5 clock = ~clock;

  logic [63:0] stimulus[`ROWS];
  int sent, received, file;
  longint cycle, first;
  bit started;

  wire [63:0] row = sent < `ROWS ? stimulus[sent] : '0;
  wire [11:0] q0, q1, q2, q3, q4, q5, q6, q7;
  wire valid;
  twoD_DCT dut (
      .i_clk(clock), .i_rst(reset_n), .i_valid(reset_n),
      .i_data0(row[63:56]), .i_data1(row[55:48]), .i_data2(row[47:40]), .i_data3(row[39:32]),
      .i_data4(row[31:24]), .i_data5(row[23:16]), .i_data6(row[15:8]), .i_data7(row[7:0]),
      .o_valid1(valid), .o_valid2(), .o_valid3(), .o_valid4(), .o_valid5(), .o_valid6(), .o_valid7(), .o_valid8(),
      .o_data0(q0), .o_data1(q1), .o_data2(q2), .o_data3(q3), .o_data4(q4), .o_data5(q5), .o_data6(q6), .o_data7(q7));

  initial begin
    $readmemh("stimulus.hex", stimulus);
    file = $fopen("result.hex", "w");
    repeat (4) @(posedge clock);
    reset_n <= 1;
  end

  // The valid outputs leave out the coefficients that the author does not use. Input comes in every cycle, so output does too.
  always @(posedge clock) begin
    cycle <= cycle + 1;
    if (reset_n) sent <= sent + 1;
    if (reset_n && sent == 0) first <= cycle;
    if (valid) started <= 1;
    if ((valid || started) && received < `ROWS) begin
      $fdisplay(file, "%h", {q0, q1, q2, q3, q4, q5, q6, q7});
      received <= received + 1;
    end
    if (received == `ROWS || cycle == 4 * `ROWS + 1000) begin
      $display("cycles %0d", cycle - first);
      $finish;
    end
  end
endmodule
