"""The memories of delivered Verilog: one module for all of them, made of registers or bound to macros."""

from __future__ import annotations

from cdu.parts.ram import RAM_MODULE

_HEAD = f"""\
// A memory with a write and a read port. read_data holds until the next read; no word is read in the cycle that writes it.
module {RAM_MODULE} #(
    parameter WIDTH = 64,
    parameter DEPTH = 64,
    parameter ADDRESS_BITS = 6
) (
    input wire clk,
    input wire write_enable,
    input wire [ADDRESS_BITS-1:0] write_address,
    input wire [WIDTH-1:0] write_data,
    input wire read_enable,
    input wire [ADDRESS_BITS-1:0] read_address,
    output wire [WIDTH-1:0] read_data
);
"""
_REGISTERS = """\
  reg [WIDTH-1:0] words [0:DEPTH-1];
  reg [WIDTH-1:0] read_word;
  assign read_data = read_word;
  always @(posedge clk) if (write_enable) words[write_address] <= write_data;
  always @(posedge clk) if (read_enable) read_word <= words[read_address];
"""
#: The module as it is without a macro: registers on a chip, block RAM on an FPGA.
GENERIC_RAM = f"{_HEAD}{_REGISTERS}endmodule\n"
