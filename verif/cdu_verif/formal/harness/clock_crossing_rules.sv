// Words cross from one clock to another once, in order, and never more than DEPTH are on their way.
//
// Clocks are free, `step` is the smallest part of time. A register takes at a rising edge what stood before it.
// More bits than one that change together are seen one by one on the other side: of the pointers that cross, one does.
// Resets begin high, both end once, when each clock has risen EDGES times; nothing is offered before.
module clock_crossing_rules #(parameter DEPTH = 4, EDGES = 3) (
  input clk, rst, registers_clk, registers_rst,
  input i__valid, i__ready, i__payload,
  input o__valid, o__ready, o__payload,
  input [$clog2(DEPTH):0] written, read
);
  (* gclk *) wire step;
  localparam BITS = $clog2(DEPTH + 1);
  reg begun = 0;
  reg last_source = 0, last_sink = 0, offered = 0, taken = 0, word_in = 0, word_out = 0;
  reg source_in_reset = 1, sink_in_reset = 1;
  reg [$clog2(DEPTH):0] last_written = 0, last_read = 0;
  reg [1:0] source_edges = 0, sink_edges = 0;
  wire source_rises = registers_clk & ~last_source & begun;
  wire sink_rises = clk & ~last_sink & begun;
  always @(posedge step) begin
    begun <= 1;
    last_source <= registers_clk;
    last_sink <= clk;
    offered <= i__valid & i__ready;
    taken <= o__valid & o__ready;
    word_in <= i__payload;
    word_out <= o__payload;
    source_in_reset <= registers_rst;
    last_written <= written;
    last_read <= read;
    sink_in_reset <= rst;
    if (source_rises & source_edges != EDGES) source_edges <= source_edges + 1;
    if (sink_rises & sink_edges != EDGES) sink_edges <= sink_edges + 1;
  end
  always @* begin
    if (source_edges != EDGES | sink_edges != EDGES) begin
      begins_in_reset: assume (rst & registers_rst);
    end
    if (begun & ~source_in_reset) begin
      source_reset_once: assume (~registers_rst);
    end
    if (begun & ~sink_in_reset) begin
      sink_reset_once: assume (~rst);
    end
    if (rst | registers_rst) begin
      nothing_offered: assume (~i__valid);
    end
  end

  wire enters = source_rises & offered, leaves = sink_rises & taken;
  reg [BITS-1:0] count = 0;
  (* anyseq *) wire choose;
  reg followed = 0, gone = 0, value = 0;
  reg [BITS-1:0] ahead = 0;
  always @(posedge step) begin
    count <= count + enters - leaves;
    if (enters & choose & ~followed) begin
      followed <= 1;
      value <= word_in;
      ahead <= count - leaves;
    end
    if (leaves & followed & ~gone) begin
      if (ahead == 0) gone <= 1;
      else ahead <= ahead - 1;
    end
  end
  wire [$clog2(DEPTH):0] moved_in = written ^ last_written, moved_out = read ^ last_read;
  always @* begin
    if (~source_in_reset & ~sink_in_reset) begin
      one_bit_in: assert ((moved_in & (moved_in - 1)) == 0);
      one_bit_out: assert ((moved_out & (moved_out - 1)) == 0);
    end
    if (enters) begin
      room: assert (count != DEPTH | leaves);
    end
    if (leaves) begin
      something: assert (count != 0);
      if (followed & ~gone & ahead == 0) begin
        order: assert (word_out == value);
      end
    end
  end
endmodule
