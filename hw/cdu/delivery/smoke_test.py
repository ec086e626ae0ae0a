"""Short test bench delivered with a unit: the unit comes out of reset, and its registers answer.

It is for users who have just instantiated the unit in a design; `cdu verify` verifies the unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdu_spec.config import CduConfig
from cdu_spec.ports import CLOCK_OF, REGISTER_PORT

#: Registers of the global block with the same content in every unit of a version.
_READ = ("ID", "VERSION")

_TEXT = """\
// {top}_tb: {top} comes out of reset and answers at its registers. Ends with a failure, or with PASS.
module {top}_tb;
{declarations}

  {top} dut (
    {connections}
  );

{clocks}

  task automatic read_register(input [11:0] address, input [31:0] expected);
    begin
      s_axil_araddr = address;
      s_axil_arvalid = 1;
      #1 while (!s_axil_arready) @(negedge {clock}) #1;
      @(negedge {clock}) s_axil_arvalid = 0;
      #1 while (!s_axil_rvalid) @(negedge {clock}) #1;
      if (s_axil_rdata !== expected || s_axil_rresp !== 0)
        $fatal(1, "FAIL: register %h holds %h, expected %h", address, s_axil_rdata, expected);
      @(negedge {clock});
    end
  endtask

  initial begin
{asserts}
    s_axil_rready = 1;
    repeat ({cycles}) @(negedge {clock});
{ends}
    repeat (4) @(negedge {clock});
{reads}
    $display("PASS");
    $finish;
  end

  initial #10000 $fatal(1, "FAIL: no answer");
endmodule
"""


def smoke_test(top: str, config: CduConfig, ports: Sequence[Mapping[str, Any]], registers: Sequence[Mapping[str, Any]]) -> str:
    """Return the SystemVerilog of the bench for a unit with the ports and registers that its manifest lists."""
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
    pairs, active = list(config.clock_ports.values()), int(config.reset_active == "high")
    return _TEXT.format(
        top=top,
        clocks="\n".join(f"  initial forever #{5 + 2 * place} {clk} = !{clk};" for place, (clk, _) in enumerate(pairs)),
        clock=config.clock_ports.get(CLOCK_OF[REGISTER_PORT], pairs[0])[0],
        cycles=4 * len(pairs),
        asserts="\n".join(f"    {reset} = {active};" for _, reset in pairs),
        ends="\n".join(f"    {reset} = !{active};" for _, reset in pairs),
        declarations="\n".join(declarations),
        connections=",\n    ".join(f".{port['name']}({port['name']})" for port in ports),
        reads="\n".join(reads),
    )
