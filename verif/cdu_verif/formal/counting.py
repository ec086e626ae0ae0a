"""Proofs of the counters of a channel, most of whose bits no simulation is long enough to reach."""

from __future__ import annotations

from cdu_spec.register_types import REGISTER_BITS, Channel

from cdu_verif.formal.binding import instance
from cdu_verif.formal.device import BoundDevice, harness

#: Counters of two registers, and the port whose numbers they sum; None: busy cycles.
_WIDE = {"cycles": None, "values": "values", "bytes": "packed"}
_PARTS = {"lower": REGISTER_BITS, "upper": REGISTER_BITS, "carry": 1}
#: Counters of busy cycles in which one signal of a port is high and the other is not.
_WAITING = {
    "input_stall": ("input_valid", "input_ready"),
    "input_idle": ("input_ready", "input_valid"),
    "output_stall": ("output_valid", "output_ready"),
}
_CLEAR = "command__clear_counters"
#: The high half of the counter whose low half was read last: the registers of all three counters show it.
_KEPT = "cycles_high"


def probes(channel: Channel) -> dict[str, int]:
    """Return the signals of a channel inside the whole control that the harness observes, with their bits."""
    wide = {f"{name}_{part}": bits for name in _WIDE for part, bits in _PARTS.items()}
    narrow = dict.fromkeys((*_WAITING, "jobs_done"), REGISTER_BITS)
    events = dict.fromkeys(("busy", "ended", _CLEAR, *(f"{name}_low_read" for name in _WIDE)), 1)
    return {f"{channel.value}.{name}": bits for name, bits in {**wide, **narrow, **events, _KEPT: REGISTER_BITS}.items()}


def counters_harness(channel: Channel, device: BoundDevice) -> str:
    """Return a harness with every counter of a channel beside its sum, and its two registers as read; inputs are free."""
    widths = {port["name"]: port["width"] for port in device.ports}

    def inner(name: str) -> str:
        return f"inner_{channel.value}__{name}"

    def port(name: str) -> str:
        return f"{channel.value}__{name}"

    def counts(name: str, counted: str, happens: str, *, bits: int = REGISTER_BITS, most: int = 1, stops: bool = False) -> str:
        parameters = {"BITS": bits, "MOST": most, "STOPS": int(stops)}
        ports = {"clear": inner(_CLEAR), "happens": happens, "counted": counted}
        return instance("counts", parameters, ports, name)

    body = counts("jobs_done", inner("jobs_done"), inner("ended"))
    for name, moved in _WIDE.items():
        lower, upper, carry = (inner(f"{name}_{part}") for part in _PARTS)
        counted = f"{{{upper}, {lower}}} + {{{REGISTER_BITS - 1}'b0, {carry}, {REGISTER_BITS}'b0}}"
        happens, most = (port(moved), widths[port(moved)]) if moved else (inner("busy"), 1)
        body += counts(name, counted, happens, bits=2 * REGISTER_BITS, most=most)
        read = {"read": f"{inner(f'{name}_low_read')} & ~{inner(_CLEAR)}", "counted": counted, "high": inner(_KEPT)}
        body += instance("counter_halves", {"HALF": REGISTER_BITS}, read, f"{name}_halves")
    for name, (high, low) in _WAITING.items():
        body += counts(name, inner(name), f"{inner('busy')} & {port(high)} & ~{port(low)}", stops=True)
    return harness(device, body)
