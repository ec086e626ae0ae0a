// A small other end for the harness of compiled units: what comes in at s_axis leaves at m_axis one cycle later or more.
// Registers: 0 stalls (bit 0: at the input, bit 1: at the output), 4 interrupt, 8 transfers at s_axis (read only),
// C breaches of the stream rules at s_axis (read only); other addresses are refused.
module loopback #(parameter SIZE = 8) (
  input clk, input rst, output irq,
  input [11:0] s_axil_awaddr, input [2:0] s_axil_awprot, input s_axil_awvalid, output s_axil_awready,
  input [31:0] s_axil_wdata, input [3:0] s_axil_wstrb, input s_axil_wvalid, output s_axil_wready,
  output reg [1:0] s_axil_bresp, output reg s_axil_bvalid, input s_axil_bready,
  input [11:0] s_axil_araddr, input [2:0] s_axil_arprot, input s_axil_arvalid, output s_axil_arready,
  output reg [31:0] s_axil_rdata, output reg [1:0] s_axil_rresp, output reg s_axil_rvalid, input s_axil_rready,
  input [8*SIZE-1:0] s_axis_tdata, input [SIZE-1:0] s_axis_tkeep, input s_axis_tlast, input s_axis_tvalid,
  output s_axis_tready,
  output reg [8*SIZE-1:0] m_axis_tdata, output reg [SIZE-1:0] m_axis_tkeep, output reg m_axis_tlast, output m_axis_tvalid,
  input m_axis_tready
);
  reg [1:0] stalls;
  reg interrupt, full, shown;
  reg [31:0] transfers, breaches;
  reg [15:0] random;
  reg waited;
  reg [9*SIZE:0] offered;
  assign irq = interrupt;

  // The output holds its word once it was shown, whatever the random bits are.
  wire show = full & (shown | ~stalls[1] | random[3]);
  assign m_axis_tvalid = show;
  assign s_axis_tready = (~full | (show & m_axis_tready)) & ~(stalls[0] & random[7]);
  wire take = s_axis_tvalid & s_axis_tready;
  wire [9*SIZE:0] word = {s_axis_tlast, s_axis_tkeep, s_axis_tdata};

  assign s_axil_awready = s_axil_wvalid & s_axil_awvalid & ~s_axil_bvalid;
  assign s_axil_wready = s_axil_awready;
  assign s_axil_arready = ~s_axil_rvalid;

  always @(posedge clk) begin
    random <= {random[14:0], random[15] ^ random[13] ^ random[12] ^ random[10]};
    if (take) {m_axis_tlast, m_axis_tkeep, m_axis_tdata} <= word;
    if (take | (show & m_axis_tready)) full <= take;
    shown <= show & ~m_axis_tready;
    transfers <= transfers + take;
    waited <= s_axis_tvalid & ~s_axis_tready;
    offered <= word;
    if (waited & (~s_axis_tvalid | offered != word)) breaches <= breaches + 1;

    if (s_axil_bvalid & s_axil_bready) s_axil_bvalid <= 0;
    if (s_axil_awready) begin
      s_axil_bvalid <= 1;
      s_axil_bresp <= s_axil_awaddr < 8 ? 0 : 2;
      if (s_axil_awaddr == 0) stalls <= s_axil_wdata[1:0];
      if (s_axil_awaddr == 4) interrupt <= s_axil_wdata[0];
    end
    if (s_axil_rvalid & s_axil_rready) s_axil_rvalid <= 0;
    if (s_axil_arvalid & s_axil_arready) begin
      s_axil_rvalid <= 1;
      s_axil_rresp <= s_axil_araddr < 16 ? 0 : 2;
      case (s_axil_araddr[3:2])
        0: s_axil_rdata <= stalls;
        1: s_axil_rdata <= interrupt;
        2: s_axil_rdata <= transfers;
        3: s_axil_rdata <= breaches;
      endcase
    end
    if (rst) begin
      {stalls, interrupt, full, shown, waited, s_axil_bvalid, s_axil_rvalid} <= 0;
      transfers <= 0;
      breaches <= 0;
      random <= 1;
    end
  end
endmodule
