// Words through an encoder whose outputs never wait, then all it has sent through a decoder whose inputs never wait.
module bench;
  bit clock, reset_n;
  always #5 clock = ~clock;

  localparam int ROOM = 4 * `ROWS + 64;
  logic [7:0] stimulus[`ROWS];
  // Data and the mark of the last word, of both streams between the two.
  logic [8:0] znz_words[ROOM], bpc_words[ROOM];
  int sent, znz_stored, bpc_stored, znz_taken, bpc_taken, received, wrong;
  longint cycle, encode_cycles, decode_start;
  bit decoding, announced;

  wire ready, idle, znz_last, znz_valid, bpc_last, bpc_valid;
  wire [7:0] znz, bpc, word;
  ebpc_encoder encoder (
      .clk_i(clock), .rst_ni(reset_n), .data_i(stimulus[sent]), .last_i(sent == `ROWS - 1),
      .vld_i(reset_n && sent < `ROWS), .rdy_o(ready), .idle_o(idle),
      .znz_data_o(znz), .znz_last_o(znz_last), .znz_vld_o(znz_valid), .znz_rdy_i(1'b1),
      .bpc_data_o(bpc), .bpc_last_o(bpc_last), .bpc_vld_o(bpc_valid), .bpc_rdy_i(1'b1), .blk_done_o());

  wire znz_ready, bpc_ready, valid, announce_ready;
  ebpc_decoder decoder (
      .clk_i(clock), .rst_ni(reset_n), .num_words_i(24'(`ROWS - 1)), .num_words_vld_i(decoding && !announced),
      .num_words_rdy_o(announce_ready),
      .znz_i(znz_words[znz_taken][7:0]), .znz_last_i(znz_words[znz_taken][8]),
      .znz_vld_i(decoding && znz_taken < znz_stored), .znz_rdy_o(znz_ready),
      .bpc_i(bpc_words[bpc_taken][7:0]), .bpc_last_i(bpc_words[bpc_taken][8]),
      .bpc_vld_i(decoding && bpc_taken < bpc_stored), .bpc_rdy_o(bpc_ready),
      .data_o(word), .last_o(), .vld_o(valid), .rdy_i(1'b1));

  initial begin
    $readmemh("stimulus.hex", stimulus);
    repeat (4) @(posedge clock);
    reset_n <= 1;
  end

  always @(posedge clock) if (reset_n) begin
    cycle <= cycle + 1;
    if (ready && sent < `ROWS) begin
      sent <= sent + 1;
      encode_cycles <= cycle + 1;
    end
    if (znz_valid) begin
      znz_words[znz_stored] <= {znz_last, znz};
      znz_stored <= znz_stored + 1;
    end
    if (bpc_valid) begin
      bpc_words[bpc_stored] <= {bpc_last, bpc};
      bpc_stored <= bpc_stored + 1;
    end
    if (!decoding && sent == `ROWS && idle && !znz_valid && !bpc_valid) begin
      decoding <= 1;
      decode_start <= cycle;
    end
    if (decoding) begin
      if (announce_ready) announced <= 1;
      if (znz_ready && znz_taken < znz_stored) znz_taken <= znz_taken + 1;
      if (bpc_ready && bpc_taken < bpc_stored) bpc_taken <= bpc_taken + 1;
      if (valid && received < `ROWS) begin
        if (word != stimulus[received]) wrong <= wrong + 1;
        received <= received + 1;
      end
    end
    if (received == `ROWS || cycle == 16 * `ROWS) begin
      $display("encode %0d decode %0d received %0d wrong %0d bytes %0d", encode_cycles, cycle - decode_start, received, wrong,
               znz_stored + bpc_stored);
      $finish;
    end
  end
endmodule
