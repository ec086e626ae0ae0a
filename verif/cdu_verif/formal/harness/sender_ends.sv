// An end of a job is that of a packet of which a word was accepted since the last cut; what a cut leaves is shown.
module sender_ends (
  input clk, rst, started,
  input i__valid, i__ready, i_last,
  input tvalid, tready, tlast,
  input cut, ended, draining
);
  wire accepts = i__valid & i__ready, leaves = tvalid & tready;
  reg due;           // the last word of a packet that was accepted since the last cut is at the port
  reg owed;          // the sink has still to get the TLAST of a packet with words from before the last cut
  reg open_at_port;  // words of a packet have left, its TLAST has not
  always @(posedge clk) begin
    due <= ~rst & ~cut & (accepts ? i_last : due & ~leaves);
    open_at_port <= ~rst & (leaves ? ~tlast : open_at_port);
    owed <= ~rst & (cut ? (leaves ? ~tlast : tvalid | open_at_port) : owed & ~(leaves & tlast));
  end
  always @* if (started & ~rst) begin
    ends_once: assert (ended == (due & leaves & ~cut));
    at_the_port: assert (~due | (tvalid & tlast));
    shown: assert (draining == owed);
  end
endmodule
