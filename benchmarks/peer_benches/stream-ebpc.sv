// Words through an encoder whose outputs never wait, and through an encoder and a decoder behind it.
module bench;
  bit clock, reset_n;
  always #5 clock = ~clock;

  logic [7:0] stimulus[`ROWS];
  int encoded, sent, received, wrong;
  longint cycle, encode_cycles;
  bit announced;

  wire ready;
  ebpc_encoder alone (
      .clk_i(clock), .rst_ni(reset_n), .data_i(stimulus[encoded]), .last_i(encoded == `ROWS - 1),
      .vld_i(reset_n && encoded < `ROWS), .rdy_o(ready), .idle_o(),
      .znz_data_o(), .znz_last_o(), .znz_vld_o(), .znz_rdy_i(1'b1),
      .bpc_data_o(), .bpc_last_o(), .bpc_vld_o(), .bpc_rdy_i(1'b1), .blk_done_o());

  wire [7:0] znz, bpc, word;
  wire encoder_ready, znz_last, znz_valid, znz_ready, bpc_last, bpc_valid, bpc_ready, valid, announce_ready;
  ebpc_encoder encoder (
      .clk_i(clock), .rst_ni(reset_n), .data_i(stimulus[sent]), .last_i(sent == `ROWS - 1),
      .vld_i(reset_n && sent < `ROWS), .rdy_o(encoder_ready), .idle_o(),
      .znz_data_o(znz), .znz_last_o(znz_last), .znz_vld_o(znz_valid), .znz_rdy_i(znz_ready),
      .bpc_data_o(bpc), .bpc_last_o(bpc_last), .bpc_vld_o(bpc_valid), .bpc_rdy_i(bpc_ready), .blk_done_o());
  ebpc_decoder decoder (
      .clk_i(clock), .rst_ni(reset_n), .num_words_i(24'(`ROWS - 1)), .num_words_vld_i(reset_n && !announced),
      .num_words_rdy_o(announce_ready), .bpc_i(bpc), .bpc_last_i(bpc_last), .bpc_vld_i(bpc_valid), .bpc_rdy_o(bpc_ready),
      .znz_i(znz), .znz_last_i(znz_last), .znz_vld_i(znz_valid), .znz_rdy_o(znz_ready),
      .data_o(word), .last_o(), .vld_o(valid), .rdy_i(1'b1));

  initial begin
    $readmemh("stimulus.hex", stimulus);
    repeat (4) @(posedge clock);
    reset_n <= 1;
  end

  always @(posedge clock) if (reset_n) begin
    cycle <= cycle + 1;
    if (announce_ready) announced <= 1;
    if (ready && encoded < `ROWS) begin
      encoded <= encoded + 1;
      encode_cycles <= cycle + 1;
    end
    if (encoder_ready && sent < `ROWS) sent <= sent + 1;
    if (valid && received < `ROWS) begin
      if (word != stimulus[received]) wrong <= wrong + 1;
      received <= received + 1;
    end
    if (received == `ROWS || cycle == 64 * `ROWS) begin
      $display("encode %0d cycles %0d received %0d wrong %0d", encode_cycles, cycle, received, wrong);
      $finish;
    end
  end
endmodule
