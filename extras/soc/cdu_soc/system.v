// A processor, memory, and a unit behind its DMA engine: the part that a simulation and an FPGA share.
module system #(
    parameter WORD_BITS = 15
) (
    input wire clk,
    input wire rst,
    // High for a cycle when the program writes to the address that ends a run, and the value it writes
    output wire exit,
    output wire [31:0] exit_code
);
  // The processor
  wire ibus__cyc, ibus__stb, ibus__we, ibus__ack, ibus__err, dbus__cyc, dbus__stb, dbus__we, dbus__ack, dbus__err;
  wire [29:0] ibus__adr, dbus__adr;
  wire [3:0] ibus__sel, dbus__sel;
  wire [31:0] ibus__dat_w, ibus__dat_r, dbus__dat_w, dbus__dat_r;
  wire irq;
  VexRiscv cpu (
      .clk(clk), .reset(rst), .externalResetVector(32'h0), .timerInterrupt(1'b0), .softwareInterrupt(1'b0),
      .externalInterruptArray({31'h0, irq}),
      .iBusWishbone_CYC(ibus__cyc), .iBusWishbone_STB(ibus__stb), .iBusWishbone_WE(ibus__we), .iBusWishbone_ADR(ibus__adr),
      .iBusWishbone_SEL(ibus__sel), .iBusWishbone_DAT_MOSI(ibus__dat_w), .iBusWishbone_DAT_MISO(ibus__dat_r),
      .iBusWishbone_ACK(ibus__ack), .iBusWishbone_ERR(ibus__err), .iBusWishbone_CTI(), .iBusWishbone_BTE(),
      .dBusWishbone_CYC(dbus__cyc), .dBusWishbone_STB(dbus__stb), .dBusWishbone_WE(dbus__we), .dBusWishbone_ADR(dbus__adr),
      .dBusWishbone_SEL(dbus__sel), .dBusWishbone_DAT_MOSI(dbus__dat_w), .dBusWishbone_DAT_MISO(dbus__dat_r),
      .dBusWishbone_ACK(dbus__ack), .dBusWishbone_ERR(dbus__err), .dBusWishbone_CTI(), .dBusWishbone_BTE()
  );

  // The unit and its engine
  wire [3:0] arid, awid, rid, bid;
  wire [39:0] araddr, awaddr;
  wire [7:0] arlen, awlen, wstrb;
  wire [2:0] arsize, awsize, arprot, awprot;
  wire [1:0] arburst, awburst, rresp, bresp;
  wire [3:0] arcache, awcache;
  wire [63:0] rdata, wdata;
  wire arvalid, arready, rvalid, rready, rlast, awvalid, awready, wvalid, wready, wlast, bvalid, bready;
  wire [11:0] l_awaddr, l_araddr;
  wire [31:0] l_wdata, l_rdata;
  wire [3:0] l_wstrb;
  wire [2:0] l_awprot, l_arprot;
  wire [1:0] l_bresp, l_rresp;
  wire l_awvalid, l_awready, l_wvalid, l_wready, l_bvalid, l_bready, l_arvalid, l_arready, l_rvalid, l_rready;
  `UNIT unit (
      .clk(clk), .rst(rst), .irq(irq),
      .m_axi_arid(arid), .m_axi_araddr(araddr), .m_axi_arlen(arlen), .m_axi_arsize(arsize), .m_axi_arburst(arburst),
      .m_axi_arcache(arcache), .m_axi_arprot(arprot), .m_axi_arvalid(arvalid), .m_axi_arready(arready),
      .m_axi_rid(rid), .m_axi_rdata(rdata), .m_axi_rresp(rresp), .m_axi_rlast(rlast), .m_axi_rvalid(rvalid),
      .m_axi_rready(rready),
      .m_axi_awid(awid), .m_axi_awaddr(awaddr), .m_axi_awlen(awlen), .m_axi_awsize(awsize), .m_axi_awburst(awburst),
      .m_axi_awcache(awcache), .m_axi_awprot(awprot), .m_axi_awvalid(awvalid), .m_axi_awready(awready),
      .m_axi_wdata(wdata), .m_axi_wstrb(wstrb), .m_axi_wlast(wlast), .m_axi_wvalid(wvalid), .m_axi_wready(wready),
      .m_axi_bid(bid), .m_axi_bresp(bresp), .m_axi_bvalid(bvalid), .m_axi_bready(bready),
      .s_axil_awaddr(l_awaddr), .s_axil_awprot(l_awprot), .s_axil_awvalid(l_awvalid), .s_axil_awready(l_awready),
      .s_axil_wdata(l_wdata), .s_axil_wstrb(l_wstrb), .s_axil_wvalid(l_wvalid), .s_axil_wready(l_wready),
      .s_axil_bresp(l_bresp), .s_axil_bvalid(l_bvalid), .s_axil_bready(l_bready),
      .s_axil_araddr(l_araddr), .s_axil_arprot(l_arprot), .s_axil_arvalid(l_arvalid), .s_axil_arready(l_arready),
      .s_axil_rdata(l_rdata), .s_axil_rresp(l_rresp), .s_axil_rvalid(l_rvalid), .s_axil_rready(l_rready)
  );

  // Wires between the parts
  wire [WORD_BITS-1:0] ram_word;
  wire [7:0] ram_strobe;
  wire [63:0] ram_wdata;
  reg [63:0] ram_rdata;
  cdu_interconnect joins (
      .clk(clk), .rst(rst),
      .ibus__cyc(ibus__cyc), .ibus__stb(ibus__stb), .ibus__we(ibus__we), .ibus__adr(ibus__adr), .ibus__sel(ibus__sel),
      .ibus__dat_w(ibus__dat_w), .ibus__dat_r(ibus__dat_r), .ibus__ack(ibus__ack), .ibus__err(ibus__err),
      .dbus__cyc(dbus__cyc), .dbus__stb(dbus__stb), .dbus__we(dbus__we), .dbus__adr(dbus__adr), .dbus__sel(dbus__sel),
      .dbus__dat_w(dbus__dat_w), .dbus__dat_r(dbus__dat_r), .dbus__ack(dbus__ack), .dbus__err(dbus__err),
      .s_axi_arid(arid), .s_axi_araddr(araddr), .s_axi_arlen(arlen), .s_axi_arsize(arsize), .s_axi_arburst(arburst),
      .s_axi_arcache(arcache), .s_axi_arprot(arprot), .s_axi_arvalid(arvalid), .s_axi_arready(arready),
      .s_axi_rid(rid), .s_axi_rdata(rdata), .s_axi_rresp(rresp), .s_axi_rlast(rlast), .s_axi_rvalid(rvalid),
      .s_axi_rready(rready),
      .s_axi_awid(awid), .s_axi_awaddr(awaddr), .s_axi_awlen(awlen), .s_axi_awsize(awsize), .s_axi_awburst(awburst),
      .s_axi_awcache(awcache), .s_axi_awprot(awprot), .s_axi_awvalid(awvalid), .s_axi_awready(awready),
      .s_axi_wdata(wdata), .s_axi_wstrb(wstrb), .s_axi_wlast(wlast), .s_axi_wvalid(wvalid), .s_axi_wready(wready),
      .s_axi_bid(bid), .s_axi_bresp(bresp), .s_axi_bvalid(bvalid), .s_axi_bready(bready),
      .m_axil_awaddr(l_awaddr), .m_axil_awprot(l_awprot), .m_axil_awvalid(l_awvalid), .m_axil_awready(l_awready),
      .m_axil_wdata(l_wdata), .m_axil_wstrb(l_wstrb), .m_axil_wvalid(l_wvalid), .m_axil_wready(l_wready),
      .m_axil_bresp(l_bresp), .m_axil_bvalid(l_bvalid), .m_axil_bready(l_bready),
      .m_axil_araddr(l_araddr), .m_axil_arprot(l_arprot), .m_axil_arvalid(l_arvalid), .m_axil_arready(l_arready),
      .m_axil_rdata(l_rdata), .m_axil_rresp(l_rresp), .m_axil_rvalid(l_rvalid), .m_axil_rready(l_rready),
      .ram_word(ram_word), .ram_strobe(ram_strobe), .ram_wdata(ram_wdata), .ram_rdata(ram_rdata),
      .exit(exit), .exit_code(exit_code)
  );

  // Memory
  reg [63:0] ram[0:(1<<WORD_BITS)-1];
  integer lane;
  always @(posedge clk) begin
    ram_rdata <= ram[ram_word];
    for (lane = 0; lane < 8; lane = lane + 1)
      if (ram_strobe[lane]) ram[ram_word][8*lane+:8] <= ram_wdata[8*lane+:8];
  end
endmodule
