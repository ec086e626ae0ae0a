"""``CduArray``: N CDUs behind AXI4-Stream data ports and an AXI4-Lite register port (JPEG-ACT, "CDU")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out, connect
from amaranth.utils import exact_log2
from cdu_spec.affine import BASE_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES
from cdu_spec.ports import CLOCK_OF, PORTS, REGISTER_PORT, scale_port_bytes
from cdu_spec.register_types import Channel

from cdu.bus import axi_lite, axi_stream
from cdu.bus.axi_stream import AxiReceiver, AxiSender
from cdu.control.control import Control
from cdu.control.payload_length import PayloadLength
from cdu.integrity.crc_checker import CrcChecker
from cdu.integrity.crc_writer import CrcWriter
from cdu.parts.stream_fifo import StreamFifo
from cdu.unit.duplex import both_directions
from cdu.unit.idle import IdleMonitor
from cdu.unit.ledger_wiring import Port, tell_findings
from cdu.values.scale_join import ScaleJoin
from cdu.words import SCALE_BITS, Scale, beats_of_bytes, bytes_of_beats, part_of_beat, value_bytes

#: Time between two words that a source with a fifteenth of the unit's clock gives to a full FIFO: 4 of its cycles, and 3 more.
_QUIET = 64


@dataclass(frozen=True)
class _Ends:
    """Ends of the streams at the ports of a direction: of data and scales that come, and of data that go."""

    receiver: AxiReceiver
    scale_receiver: AxiReceiver
    sender: AxiSender


class CduArray(wiring.Component):
    """Whole unit, apart from a DMA engine.

    Parameters
    ----------
    config
        All parameters are used.

    Ports
    -----
    s_axis_*, m_axis_*
        Compression: AXI4-Stream of values (P rows of 8 values per transfer, in the order of ``docs/reference/bitstream.md``)
        and of payload (M bytes per transfer). One packet, up to TLAST, per job.
    s_axis_packed_*, m_axis_values_*
        Decompression: payload in, values out.
    s_axis_scale_*, s_axis_reciprocal_*
        AXI4-Stream of the scales of compression and of decompression, one float32 per transfer; a packet per job that has
        scales. In units with mode blpa a transfer has 8 bytes: the float32, the channel's offset (int16), two that are ignored.
        Scales may be written to the registers instead.
    s_axil_*
        AXI4-Lite port of the registers (``docs/reference/registers.md``).
    irq
        Interrupt, high while an enabled condition holds.
    idle
        The clock may stop: nothing is in progress, and no port is offered anything (:class:`~cdu.unit.idle.IdleMonitor`).
        Depends combinationally on the valid of every receiving port.

    Rate: 8 * N values per cycle in each direction, as far as the widths of the ports allow.
    """

    irq: Signal
    idle: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.control = Control(config)
        self.registers = self.control.registers
        values, packed = value_bytes(config), config.packed_bytes
        self._bytes = {Channel.COMPRESS: (values, packed), Channel.DECOMPRESS: (packed, values)}
        ports: dict[str, Any] = {}
        for direction, (i_bytes, o_bytes) in self._bytes.items():
            names = PORTS[direction]
            ports |= axi_stream.members(names.input, i_bytes, receives=True)
            ports |= axi_stream.members(names.scales, scale_port_bytes(config.has_offsets), receives=True)
            ports |= axi_stream.members(names.output, o_bytes, receives=False)
        super().__init__(ports | axi_lite.members(REGISTER_PORT) | {"irq": Out(1), "idle": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.control = control = self.control
        m.submodules.core = core = both_directions(self.config)
        axi_lite.join(m, self, REGISTER_PORT, control)
        m.d.comb += self.irq.eq(control.irq)
        self._idle(m, control)
        for direction in self._bytes:
            channel, half = getattr(control, direction.value), getattr(core, direction.value)
            ends, rooms = self._ends(m, direction), list[Value]()
            scales, join_scales, partial_scale = self._scales(m, direction, channel, half, ends.scale_receiver, rooms)
            partial_beat = self._data(m, direction, channel, half, ends, rooms)

            # Jobs, tables, events
            connect(m, channel.job, half.job)
            m.d.comb += [
                channel.room.eq(Cat(rooms).all()),
                half.shifts.eq(channel.shifts),
                channel.events.eq(half.events),
                channel.port_events["bad_scale"].eq(join_scales.bad_scale),
                channel.port_events["scale_source"].eq(join_scales.scale_source),
                channel.draining.eq(ends.sender.draining),
                channel.job_done.eq(ends.sender.ended),
                channel.input_valid.eq(ends.receiver.tvalid),
                channel.input_ready.eq(ends.receiver.tready),
                channel.output_valid.eq(ends.sender.tvalid),
                channel.output_ready.eq(ends.sender.tready),
                channel.flushing.eq(ends.receiver.flushing | ends.scale_receiver.flushing),
                channel.progress.eq((scales.o.valid & scales.o.ready) | half.held),
                half.abort.eq(channel.abort),
                ends.sender.cut.eq(channel.abort),
            ]
            # A register, as the comparison of a wide TKEEP takes long
            m.d.sync += channel.port_events["keep"].eq(
                ends.receiver.bad_keep | partial_beat | ends.scale_receiver.bad_keep | partial_scale
            )
            if self.config.ledger_jobs:
                data, given = Port(ends.receiver, partial_beat), Port(ends.scale_receiver, partial_scale)
                tell_findings(m, direction, channel, half, data, given, join_scales)
            for end in (ends.receiver, ends.scale_receiver):
                m.d.comb += [end.clear.eq(channel.abort), end.flush.eq(channel.flush)]
        return m

    def _ends(self, m: Module, direction: Channel) -> _Ends:
        """Return the ends of the streams at the ports of a direction."""
        name, names = direction.value, PORTS[direction]
        i_bytes, o_bytes = self._bytes[direction]
        scale_bytes = scale_port_bytes(self.config.has_offsets)
        # The windows of several CDUs onto payloads are wide, and their paths of ready too long to reach the port.
        words = 2 if direction is Channel.DECOMPRESS and self.config.cdus > 1 else 1
        m.submodules[f"{name}_receiver"] = receiver = AxiReceiver(i_bytes, self._quiet(names.input), words)
        m.submodules[f"{name}_scale_receiver"] = scale_receiver = AxiReceiver(scale_bytes, self._quiet(names.scales))
        m.submodules[f"{name}_sender"] = sender = AxiSender(o_bytes)
        axi_stream.join(m, self, names.input, receiver)
        axi_stream.join(m, self, names.scales, scale_receiver)
        axi_stream.join(m, self, names.output, sender)
        return _Ends(receiver, scale_receiver, sender)

    def _scales(
        self, m: Module, direction: Channel, channel: Any, half: Any, receiver: AxiReceiver, rooms: list[Value]
    ) -> tuple[StreamFifo, ScaleJoin, Value]:
        """Join the scales that are received to those of the registers, and both to a half of the core.

        Return the queue of scales, their join, and whether an incomplete scale passes in this cycle; ``rooms`` gets the room
        for a job.
        """
        name = direction.value
        bits = self.config.scale_bits if direction is Channel.COMPRESS else self.config.used_reciprocal_bits
        scales, join_scales = StreamFifo(Scale(), 2), ScaleJoin(direction, bits)
        m.submodules[f"{name}_scales"] = ResetInserter(channel.abort)(scales)
        m.submodules[f"{name}_scale_join"] = ResetInserter(channel.abort)(join_scales)
        m.d.comb += [
            join_scales.job.valid.eq(channel.starts & channel.scaled),
            join_scales.job.payload.eq(channel.scale_order),
        ]
        rooms.append(join_scales.job.ready)
        connect(m, channel.scales, join_scales.written)
        partial_scale = _scales_of_bytes(m, receiver.o, join_scales.streamed)
        connect(m, join_scales.o, scales.i)
        connect(m, scales.o, half.scales)
        return scales, join_scales, partial_scale

    def _data(self, m: Module, direction: Channel, channel: Any, half: Any, ends: _Ends, rooms: list[Value]) -> Value:
        """Join the data ports of a direction to a half of the core, and tell how many values and bytes pass.

        Return whether an incomplete beat passes in this cycle; ``rooms`` gets the rooms for a job.
        """
        name = direction.value
        i_bytes, o_bytes = self._bytes[direction]
        transfer_in, transfer_out = half.i.valid & half.i.ready, half.o.valid & half.o.ready & ~channel.abort
        partial_beat = Signal(name=f"{name}_partial_beat")
        leaving, arriving = half.o, ends.receiver.o
        if self.config.payload_crc:
            crc: CrcWriter | CrcChecker
            if direction is Channel.COMPRESS:
                crc = CrcWriter(o_bytes)
                connect(m, leaving, crc.i)
                leaving = crc.o
            else:
                crc = CrcChecker(i_bytes)
                connect(m, arriving, crc.i)
                arriving = crc.o
                m.d.comb += channel.port_events["bad_crc"].eq(crc.bad_crc)
            m.submodules[f"{name}_crc"] = ResetInserter(channel.abort)(crc)
            m.d.comb += [crc.job.valid.eq(channel.starts), crc.job.payload.eq(channel.has_crc)]
            rooms.append(crc.job.ready)
        m.d.comb += [ends.sender.i.valid.eq(leaving.valid), leaving.ready.eq(ends.sender.i.ready)]
        if direction is Channel.COMPRESS:
            self._values_of_bytes(m, ends.receiver.o.payload, half.i.payload)
            m.d.comb += [
                half.i.valid.eq(ends.receiver.o.valid),
                ends.receiver.o.ready.eq(half.i.ready),
                partial_beat.eq(transfer_in & part_of_beat(self.config, ends.receiver.o.payload["count"])),
                ends.sender.i.payload.eq(leaving.payload),
                channel.values.eq(Mux(transfer_in, half.i.payload["count"].shift_left(exact_log2(LANES)), 0)),
                channel.packed.eq(Mux(transfer_out, half.o.payload["count"], 0)),
            ]
        else:
            self._bytes_of_values(m, half.o.payload, ends.sender.i.payload)
            length = PayloadLength(self.config)
            m.submodules[f"{name}_length"] = ResetInserter(channel.abort)(length)
            m.d.comb += [
                length.job.valid.eq(channel.starts),
                length.job.payload.eq(channel.expected_length),
            ]
            rooms.append(length.job.ready)
            connect(m, arriving, length.i)
            connect(m, length.o, half.i)
            m.d.comb += [
                channel.port_events["payload_length"].eq(length.payload_length),
                channel.values.eq(Mux(transfer_out, half.o.payload["count"].shift_left(exact_log2(LANES)), 0)),
                channel.packed.eq(Mux(transfer_in, half.i.payload["count"], 0)),
            ]
        return partial_beat

    def _quiet(self, port: str) -> int:
        """Return the cycles without a word after which none is on its way to a port: 0 for a port with the unit's clock."""
        return _QUIET if CLOCK_OF[port] in self.config.own_clocks else 0

    def _idle(self, m: Module, control: Control) -> None:
        """Drive ``idle``: waiting answers and outputs keep the clock running; offered inputs start it."""
        offers, answers = ("awvalid", "wvalid", "arvalid"), ("bvalid", "rvalid")
        asked = [getattr(self, f"{REGISTER_PORT}_{valid}") for valid in offers]
        works = [control.works, *(getattr(self, f"{REGISTER_PORT}_{valid}") for valid in answers)]
        for names in PORTS.values():
            asked += [getattr(self, f"{name}_tvalid") for name in (names.input, names.scales)]
            works.append(getattr(self, f"{names.output}_tvalid"))
        m.submodules.idle_monitor = idle = IdleMonitor()
        m.d.comb += [idle.asked.eq(Cat(asked).any()), idle.works.eq(Cat(works).any()), self.idle.eq(idle.idle)]

    def _values_of_bytes(self, m: Module, packed: Any, word: Any) -> None:
        """Convert a word of bytes to a word of beats; an incomplete beat counts."""
        m.d.comb += [
            word["values"].eq(packed["data"]),
            word["count"].eq(beats_of_bytes(self.config, packed["count"])),
            word["last"].eq(packed["last"]),
        ]

    def _bytes_of_values(self, m: Module, word: Any, packed: Any) -> None:
        """Convert a word of beats to a word of bytes, the inverse of :meth:`_values_of_bytes`."""
        m.d.comb += [
            packed["data"].eq(word["values"]),
            packed["count"].eq(bytes_of_beats(self.config, word["count"])),
            packed["last"].eq(word["last"]),
        ]


def _scales_of_bytes(m: Module, words: stream.Interface, scales: stream.Interface) -> Value:
    """Convert words of the scale port to scales; return whether an incomplete one passes in this cycle."""
    word = words.payload
    m.d.comb += [
        scales.valid.eq(words.valid),
        words.ready.eq(scales.ready),
        scales.payload["value"].eq(word["data"][:SCALE_BITS]),
        scales.payload["offset"].eq(word["data"][SCALE_BITS:][:BASE_BITS]),
        scales.payload["last"].eq(word["last"]),
    ]
    whole: Value = word["count"] == len(word["data"]) // 8
    return words.valid & words.ready & ~whole
