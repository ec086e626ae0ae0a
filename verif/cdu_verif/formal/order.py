"""Nothing is lost, doubled or put in another order.

One transfer of the input is chosen freely and followed: how many outputs stand before what it brought is known when it
enters, and when these have left, the next output must be it. As the choice is free this holds for all of them.
"""

from __future__ import annotations

from cdu_spec.geometry import BLOCK_SIDE

from cdu_verif.formal.device import Device
from cdu_verif.formal.stream_rules import with_assumptions

_TRANSPOSER = """\
  (* anyconst *) wire [2:0] row;
  (* anyconst *) wire [2:0] column;
  (* anyseq *) wire choose;
  wire enters = i__valid & i__ready, leaves = o__valid & o__ready;
  reg [2:0] step;
  reg [4:0] inside;
  reg followed;
  reg [4:0] before;
  reg [WIDTH-1:0] value;
  wire chosen = enters & choose & ~followed & step == row;
  always @(posedge clk) begin
    step <= step + enters;
    inside <= inside + enters - leaves;
    if (chosen) begin
      followed <= 1;
      before <= inside - leaves + column - row;
      value <= i__payload[column * WIDTH +: WIDTH];
    end else if (followed & leaves) begin
      before <= before - 1;
      if (before == 0) followed <= 0;
    end
    if (rst) begin step <= 0; inside <= 0; followed <= 0; end
  end
  always @* if (started & ~rst) begin
    nothing_lost: assert (inside <= CAPACITY);
    nothing_doubled: assert (~leaves | inside != 0 | enters);
    if (followed & o__valid & before == 0) in_order: assert (o__payload[row * WIDTH +: WIDTH] == value);
  end
"""


def transposer_harness(device: Device, width: int) -> str:
    """Value at ``column`` of row ``row`` of any block leaves in lane ``row`` of beat ``column`` of the same block."""
    parameters = f"  localparam WIDTH = {width}, CAPACITY = {2 * BLOCK_SIDE};\n"
    return with_assumptions(device, parameters + _TRANSPOSER)
