// A request of AXI4 is a burst of whole words, INCR, of at most MOST words, that does not cross a boundary of 4 KiB.
module axi_burst #(parameter MOST = 16) (
  input started, rst,
  input valid, input [39:0] addr, input [7:0] len, input [2:0] size, input [1:0] burst
);
  wire [12:0] bytes = (13'd1 + len) << size;
  always @* if (started & ~rst & valid) begin
    incrementing: assert (burst == 2'd1);
    aligned: assert ((addr & ((40'd1 << size) - 40'd1)) == 0);
    short_enough: assert (len < MOST);
    inside_4k: assert (addr[11:0] + bytes <= 13'd4096);
  end
endmodule
