"""The watchdog: a job that does not move is aborted, whatever the data path does."""

from __future__ import annotations

from cdu_spec.registers import REGISTER_BITS

from cdu_verif.formal.device import Device, harness

#: What the harness sees of a channel's control.
PROBES = {"busy": 1, "still": REGISTER_BITS, "expired": 1, "registers.watchdog_value": REGISTER_BITS}
#: Cycles from the last one that the watchdog counts to the abort.
DELAY = 4

_MOVES = (
    "(unit__input_valid & unit__input_ready) | (unit__output_valid & unit__output_ready)"
    " | (unit__scales__valid & unit__scales__ready) | unit__progress"
)


def watchdog_harness(device: Device) -> str:
    """With a job under way and the register WATCHDOG at the same value other than 0, nothing moves for at most so many cycles.

    After that comes the abort, and one cycle later no job is under way. All inputs are free: no behaviour of the data path and
    of the ports is excluded.
    """
    body = f"""\
  wire [{REGISTER_BITS - 1}:0] limit = inner_registers__watchdog_value;
  reg [{REGISTER_BITS - 1}:0] limit_before;
  reg aborted;
  reg [{REGISTER_BITS}:0] quiet;  // cycles without movement up to the one before
  wire counts = inner_busy & ~({_MOVES}) & ~unit__abort & limit != 0;
  always @(posedge clk) begin
    limit_before <= limit;
    aborted <= unit__abort & ~rst;
    quiet <= rst | ~counts ? 0 : limit != limit_before ? 1 : quiet + 1;
  end
  always @* if (started) begin
    if (quiet != 0 && limit == limit_before) in_time: assert (quiet <= limit + {DELAY});
    if (aborted) over: assert (~inner_busy);
    if (quiet >= 2) counting: assert (inner_expired || unit__abort || inner_still + 33'd1 >= quiet);
  end
"""
    return harness(device, body)
