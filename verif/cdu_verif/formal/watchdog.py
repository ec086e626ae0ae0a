"""Proof of the watchdog: a job that does not move is aborted, whatever the data path does."""

from __future__ import annotations

from cdu_spec.register_types import REGISTER_BITS

from cdu_verif.formal.binding import instance
from cdu_verif.formal.device import BoundDevice, harness

#: Signals of a channel's control that the harness observes.
PROBES = {"busy": 1, "still": REGISTER_BITS, "expired": 1, "registers.watchdog_value": REGISTER_BITS}
#: Cycles from the last one that the watchdog counts to the abort.
DELAY = 4

_MOVES = (
    "(unit__input_valid & unit__input_ready) | (unit__output_valid & unit__output_ready)"
    " | (unit__scales__valid & unit__scales__ready) | unit__progress"
)


def watchdog_harness(device: BoundDevice) -> str:
    """Return a harness: while a job is in progress and WATCHDOG constant, nothing moves for at most that many cycles.

    All inputs are free: no behaviour of the data path and of the ports is excluded.
    """
    ports = {"moves": _MOVES, "limit": "inner_registers__watchdog_value"}
    return harness(device, instance("watchdog", {"BITS": REGISTER_BITS, "DELAY": DELAY}, ports))
