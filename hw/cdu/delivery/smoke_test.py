"""A test bench of a page that travels with a unit: it comes out of reset, and its registers answer.

For the one who has just put the unit into a design of his own. What verifies the unit is `cdu verify`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdu_spec.config import CduConfig

#: Registers of the global block with the same content in every unit of a version.
_READ = ("ID", "VERSION")

_TEXT = """\
// {top}_tb: {top} comes out of reset and answers at its registers. Ends with a failure, or with PASS.
module {top}_tb;
{declarations}

  {top} dut (
    {connections}
  );

  initial forever #5 clk = !clk;

  task automatic read_register(input [11:0] address, input [31:0] expected);
    begin
      s_axil_araddr = address;
      s_axil_arvalid = 1;
      #1 while (!s_axil_arready) @(negedge clk) #1;
      @(negedge clk) s_axil_arvalid = 0;
      #1 while (!s_axil_rvalid) @(negedge clk) #1;
      if (s_axil_rdata !== expected || s_axil_rresp !== 0)
        $fatal(1, "FAIL: register %h holds %h, expected %h", address, s_axil_rdata, expected);
      @(negedge clk);
    end
  endtask

  initial begin
    {reset} = {active};
    s_axil_rready = 1;
    repeat (4) @(negedge clk);
    {reset} = !{active};
    repeat (2) @(negedge clk);
{reads}
    $display("PASS");
    $finish;
  end

  initial #10000 $fatal(1, "FAIL: no answer");
endmodule
"""


def smoke_test(top: str, config: CduConfig, ports: Sequence[Mapping[str, Any]], registers: Sequence[Mapping[str, Any]]) -> str:
    """SystemVerilog of the bench for a unit, of which ports and registers are given as its manifest lists them."""
    declarations = [
        f"  {'logic' if port['direction'] == 'input' else 'wire'} [{port['width'] - 1}:0] {port['name']}"
        f"{' = 0' if port['direction'] == 'input' else ''};"
        for port in ports
    ]
    reads = [
        f"    read_register({entry['address']}, 32'h{entry['reset']:08x}); // {entry['name']}"
        for entry in registers
        if entry["block"] == "global" and entry["name"] in _READ
    ]
    return _TEXT.format(
        top=top,
        reset=config.reset_port,
        active=int(config.reset_active == "high"),
        declarations="\n".join(declarations),
        connections=",\n    ".join(f".{port['name']}({port['name']})" for port in ports),
        reads="\n".join(reads),
    )
