"""Wiring of the errors found at each place, and of the ends of jobs there, to the ledger of a direction."""

from __future__ import annotations

from typing import Any, NamedTuple

from amaranth.hdl import Module, ResetInserter, Value
from cdu_spec.register_types import Channel

from cdu.bus.axi_stream import AxiReceiver
from cdu.control.packet_marks import PacketMarks
from cdu.unit.direction import ends_packet
from cdu.values.scale_join import ScaleJoin


class Port(NamedTuple):
    """A receiving port: its receiver, and whether a word that leaves it in this cycle is incomplete."""

    receiver: AxiReceiver
    partial: Value


def tell_findings(m: Module, direction: Channel, channel: Any, half: Any, data: Port, scales: Port, join: ScaleJoin) -> None:
    """Drive ``findings`` of a direction's :class:`~cdu.control.channel_control.ChannelPorts`, whose events are driven already.

    ``half``: the path, with its :class:`~cdu.unit.direction.DirectionPorts`; ``join`` takes the scales from their sources.
    """
    bad_data, bad_scales = (
        _bad(m, channel, f"{direction.value}_{name}_marks", port) for name, port in (("data", data), ("scale", scales))
    )
    keep = {"scales": bad_scales, "input": bad_data, "receiver": bad_data}
    ends = {
        **dict.fromkeys(("receiver", "crc"), ends_packet(data.receiver.o)),
        "input": ends_packet(half.i),
        "scales": ends_packet(join.o),
        "windows": ends_packet(half.scales),
        "output": ends_packet(half.o),
    }
    events = {name: events[name] for events in (channel.events, channel.port_events) for name, _ in events.shape()}
    inside = [name for name, _ in half.found.shape()]
    for name, field in channel.findings.shape():
        findings = channel.findings[name]
        if name in inside:
            m.d.comb += findings.eq(half.found[name])
            continue
        m.d.comb += findings.ends.eq(ends[name])
        for flag, _ in field.shape:
            if flag != "ends":
                m.d.comb += findings[flag].eq(keep[name] if flag == "keep" else events[flag])


def _bad(m: Module, channel: Any, name: str, port: Port) -> Value:
    """Return whether TKEEP of the packet that leaves was bad, at the port or where its words are checked.

    An error at the port is reported with the last word of the packet, which may have arrived before its job was started.
    """
    end, words = port.receiver, port.receiver.o
    marks = PacketMarks()
    m.submodules[name] = ResetInserter(channel.abort)(marks)
    m.d.comb += [
        marks.bad.eq(end.bad_keep),
        marks.enters.eq(end.tvalid & end.tready & end.tlast & ~end.flushing),
        marks.leaves.eq(ends_packet(words)),
    ]
    return (marks.leaves & marks.marked) | port.partial
