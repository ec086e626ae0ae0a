"""``CduDma``: the DMA engine that stands in front of a unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Array, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect
from cdu_spec.config import CduConfig
from cdu_spec.dma import COMPLETION_BYTES, dma_entries, read_bursts, read_words, scale_words, unanswered_bursts
from cdu_spec.ports import PORTS, REGISTER_PORT, scale_port_bytes
from cdu_spec.register_types import Channel

from cdu.bus import axi_lite, axi_stream
from cdu.bus.axi_stream import AxiReceiver, AxiSender
from cdu.dma import axi4, register_bridge
from cdu.dma.axi4 import BURST_WORDS
from cdu.dma.dma_registers import DmaRegisters
from cdu.dma.memory_reader import repeated_bytes
from cdu.dma.packet_turns import PacketTurns
from cdu.dma.read_master import AxiReadMaster
from cdu.dma.register_bridge import RegisterBridge
from cdu.dma.ring import Ring
from cdu.dma.write_master import AxiWriteMaster, writer_streams
from cdu.words import value_bytes

#: Prefix of the port to memory.
MEMORY_PORT = "m_axi"
#: Words of a tensor or a payload that wait to be written in each ring.
_WRITE_WORDS = 2 * BURST_WORDS


class CduDma(wiring.Component):
    """Runs the jobs of two rings of descriptors, one for each direction (page ``dma.md``).

    Parameters
    ----------
    config
        All parameters are used; ``dma_bits`` must not be 0.

    Ports
    -----
    s_axil_*
        AXI4-Lite of the host: the registers of the engine, and of the unit.
    m_axil_*
        AXI4-Lite to the unit.
    m_axi_*
        AXI4 to memory. An ID per reader, ring of descriptors and writer; no burst is longer than 16 words or crosses 4 KiB.
    AXI4-Stream ports
        Those of a unit, the other way round, with the same names.
    irq
        Interrupt of the engine.
    """

    irq: Signal

    def __init__(self, config: CduConfig) -> None:
        assert config.dma_bits, "this configuration has no DMA engine"
        self.config, self.size = config, config.dma_bits // 8
        self.registers = dma_entries()
        values, packed = value_bytes(config), config.packed_bytes
        self._bytes = {Channel.COMPRESS: (values, packed), Channel.DECOMPRESS: (packed, values)}
        self._scale = scale_port_bytes(config.has_offsets)
        ports: dict[str, Any] = axi_lite.members(REGISTER_PORT) | {"irq": Out(1)}
        ports |= {name: member.flip() for name, member in axi_lite.members(register_bridge.PREFIX).items()}
        ports |= axi4.read_members(MEMORY_PORT, self.size) | axi4.write_members(MEMORY_PORT, self.size)
        for direction, (i_bytes, o_bytes) in self._bytes.items():
            names = PORTS[direction]
            ports |= axi_stream.members(names.input, i_bytes, receives=False)
            ports |= axi_stream.members(names.scales, self._scale, receives=False)
            ports |= axi_stream.members(names.output, o_bytes, receives=True)
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rings = {channel: Ring(self.config, channel) for channel in Channel}
        m.submodules.registers = registers = DmaRegisters(rings[Channel.COMPRESS].signature)
        m.submodules.bridge = bridge = RegisterBridge(1 + Ring.accesses * len(rings))
        # A ring has a reader of data, one of scales, a writer of data; both take turns at a writer of records.
        record_words = 1 + -(-(COMPLETION_BYTES - 1) // self.size)  # one may begin within a word
        # The first of all reads what is to be compressed
        words = (read_words(self.config), scale_words(self.config)) * len(rings)
        m.submodules.reads = reads = AxiReadMaster(
            self.size, words, repeated_bytes(self.config), read_bursts(self.config), direct=len(rings)
        )
        m.submodules.writes = writes = AxiWriteMaster(
            self.size, (_WRITE_WORDS,) * len(rings) + (record_words,), unanswered=unanswered_bursts(self.config)
        )
        m.submodules.record_turns = records = PacketTurns(writer_streams(self.size), len(rings))
        records.join(m, {name: getattr(writes, name)[-1] for name in records.streams})
        axi_lite.join(m, self, REGISTER_PORT, registers)
        axi_lite.join(m, bridge, register_bridge.PREFIX, self)
        axi4.join(m, self, reads, axi4.read_members(MEMORY_PORT, self.size))
        axi4.join(m, self, writes, axi4.write_members(MEMORY_PORT, self.size))
        m.d.comb += self.irq.eq(registers.irq)
        attributes = [getattr(registers, f"{channel.value}_attributes") for channel in rings]
        m.d.comb += Value.cast(writes.attributes[-1]).eq(Array(Value.cast(one) for one in attributes)[records.client])
        for number, (channel, ring) in enumerate(rings.items()):
            m.d.comb += [
                *(reads.attributes[Ring.readers * number + place].eq(attributes[number]) for place in range(Ring.readers)),
                reads.attributes[Ring.readers * len(rings) + number].eq(attributes[number]),
                writes.attributes[number].eq(attributes[number]),
            ]
            name, names = channel.value, PORTS[channel]
            i_bytes, o_bytes = self._bytes[channel]
            m.submodules[name] = ring
            for port in DmaRegisters.to_ring:
                m.d.comb += getattr(ring, port).eq(getattr(registers, f"{name}_{port}"))
            for port in DmaRegisters.of_ring:
                m.d.comb += getattr(registers, f"{name}_{port}").eq(getattr(ring, port))
            for place in range(Ring.readers):
                client = Ring.readers * number + place
                connect(m, ring.read_segments[place], reads.segments[client])
                connect(m, reads.o[client], ring.read[place])
                connect(m, reads.result[client], ring.read_result[place])
            connect(m, ring.bursts, reads.bursts[number])
            for port in ("answer", "answer_data", "answer_failed"):
                m.d.comb += getattr(ring, port).eq(getattr(reads, port)[number])
            writers: Sequence[Any] = writes, records
            for place, writer in enumerate(writers):
                connect(m, ring.write_segments[place], writer.segments[number])
                connect(m, ring.write[place], writer.i[number])
                connect(m, writer.result[number], ring.write_result[place])
            m.submodules[f"{name}_sender"] = sender = AxiSender(i_bytes)
            m.submodules[f"{name}_scale_sender"] = scale_sender = AxiSender(self._scale)
            m.submodules[f"{name}_receiver"] = receiver = AxiReceiver(o_bytes)
            for port, end in ((names.input, sender), (names.scales, scale_sender), (names.output, receiver)):
                axi_stream.join(m, self, port, end)
            connect(m, ring.input, sender.i)
            connect(m, ring.scales, scale_sender.i)
            connect(m, receiver.o, ring.output)
        # Jobs under way go before the next ones, these before the host
        sides = [*(ring.access[number] for number in range(Ring.accesses) for ring in rings.values()), registers.access]
        for side, access in zip(sides, bridge.access, strict=True):
            connect(m, side, access)
        return m
