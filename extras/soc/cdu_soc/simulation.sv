// The system in a simulation, which ends when the program writes to the address that ends it.
// +image=FILE and +dump=FILE: what memory holds at the beginning and at the end, a word of 64 bits in each line.
module simulation;
  parameter WORD_BITS = 15;
  parameter LIMIT = 10000000;  // cycles

  reg clk = 0, rst = 1;
  always #1 clk = ~clk;

  wire exit;
  wire [31:0] exit_code;
  system #(.WORD_BITS(WORD_BITS)) simulated (.clk, .rst, .exit, .exit_code);

  string image, dump;
  integer cycles = 0;
  initial begin
    if (!$value$plusargs("image=%s", image) || !$value$plusargs("dump=%s", dump)) $fatal(1, "no +image or no +dump");
    $readmemh(image, simulated.ram);
  end
  always @(posedge clk) begin
    cycles <= cycles + 1;
    rst <= cycles < 4;
    if (exit && !rst) begin
      $writememh(dump, simulated.ram);
      $display("exit %0d after %0d cycles", exit_code, cycles);
      $finish;
    end
    if (cycles == LIMIT) $fatal(1, "no exit after %0d cycles", cycles);
  end
endmodule
