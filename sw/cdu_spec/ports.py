"""Names of the AXI4-Stream ports of a unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdu_spec.config_rules import OWN_CLOCKS
from cdu_spec.register_types import Channel


@dataclass(frozen=True)
class Ports:
    """The ports of one direction, by the prefix of their signals (``s_axis`` of ``s_axis_tdata``)."""

    input: str
    scales: str
    output: str


#: Compression takes values and float32 multipliers k and gives payload; decompression takes payload and float32 reciprocals r
#: and gives values.
PORTS: Mapping[Channel, Ports] = {
    Channel.COMPRESS: Ports("s_axis", "s_axis_scale", "m_axis"),
    Channel.DECOMPRESS: Ports("s_axis_packed", "s_axis_reciprocal", "m_axis_values"),
}
#: Prefix of the AXI4-Lite port of the registers.
REGISTER_PORT = "s_axil"
_IN, _OUT = PORTS[Channel.COMPRESS], PORTS[Channel.DECOMPRESS]
#: Ports that share a clock, by the name of that clock. Scales go with values.
CLOCKED_PORTS: Mapping[str, tuple[str, ...]] = dict(
    zip(
        OWN_CLOCKS,
        ((REGISTER_PORT,), (_IN.input, _IN.scales, _OUT.scales, _OUT.output), (_IN.output, _OUT.input)),
        strict=True,
    )
)
#: The name of the clock of a port, by the port.
CLOCK_OF: Mapping[str, str] = {port: name for name, ports in CLOCKED_PORTS.items() for port in ports}


def scale_port_bytes(offsets: bool) -> int:
    """Return the bytes per transfer of a scale port: a float32; with mode blpa also an offset (int16) and two bytes."""
    return 8 if offsets else 4
