"""AXI interfaces of a unit, found by the names of its ports, and the clock that each port belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cdu_spec.config import CduConfig
from cdu_spec.ports import CLOCK_OF

AXI4, AXI4_LITE, AXI4_STREAM = "AXI4", "AXI4-Lite", "AXI4-Stream"
#: First channel of an interface by the letters before ``valid``: its direction is that of the interface.
_FIRST = re.compile(r"(?P<name>\w+)_(?P<channel>t|aw)valid")


@dataclass(frozen=True)
class Interface:
    """An AXI interface.

    Parameters
    ----------
    name
        Prefix of its ports: ``s_axis`` of ``s_axis_tdata``.
    protocol
        :data:`AXI4`, :data:`AXI4_LITE` or :data:`AXI4_STREAM`.
    receives
        Whether the unit receives transfers or requests, as AXI's slaves do.
    clock, reset
        Ports of its clock and reset.
    signals
        Port by the protocol's own name of each signal, such as ``TDATA``.
    """

    name: str
    protocol: str
    receives: bool
    clock: str
    reset: str
    signals: Mapping[str, str]

    def entry(self) -> dict[str, Any]:
        """Return the entry of the manifest."""
        return asdict(self)


def interfaces(ports: Sequence[Mapping[str, Any]], config: CduConfig) -> Iterator[Interface]:
    """Yield the interfaces among the ports that a manifest lists, in their order; a block has none."""
    names = [port["name"] for port in ports]
    for port in ports:
        found = _FIRST.fullmatch(port["name"])
        if found is None:
            continue
        name = found["name"]
        signals = {other.removeprefix(f"{name}_").upper(): other for other in names if owner(other) == name}
        protocol = AXI4_STREAM if found["channel"] == "t" else AXI4 if "WLAST" in signals else AXI4_LITE
        yield Interface(name, protocol, port["direction"] == "input", *clock_pair(port["name"], config), signals)


def owner(port: str) -> str:
    """Return the name of the interface that a port belongs to, if it belongs to one."""
    return port.rpartition("_")[0]


def clock_pair(port: str, config: CduConfig) -> tuple[str, str]:
    """Return the ports of the clock and the reset that a port belongs to; a clock or reset belongs to its own pair."""
    pairs = config.clock_ports
    own = next((pair for pair in pairs.values() if port in pair), None)
    return own or pairs.get(CLOCK_OF.get(owner(port), ""), pairs["sync"])
