"""Ring of one direction of the engine: descriptors in, records out, and between them the streams of the unit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import DMA_JOBS
from cdu_spec.dma import MAX_RING_LOG2, MEMORY_ADDRESS_BITS
from cdu_spec.ports import scale_port_bytes
from cdu_spec.register_types import REGISTER_BITS, Channel

from cdu.bus.axi_lite import AccessPort
from cdu.dma.descriptor_fetch import DescriptorFetch
from cdu.dma.job_ender import JobEnder
from cdu.dma.job_feeder import JobFeeder
from cdu.dma.job_finisher import JobFinisher
from cdu.dma.job_planner import JobPlanner
from cdu.dma.job_programmer import JobProgrammer
from cdu.dma.job_starter import JobStarter
from cdu.dma.memory_writer import WriteResult
from cdu.dma.packet_gate import PacketGate, Passage
from cdu.dma.read_master import burst_streams
from cdu.dma.record_writer import RecordWriter
from cdu.dma.scale_walk import ScaleWalk
from cdu.dma.scale_words import ScaleWords
from cdu.dma.segments import Segment
from cdu.dma.tensor_walk import TensorWalk
from cdu.parts.register_slice import register_slice
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.width_converter import Bytes, WidthConverter
from cdu.words import value_bytes


class Ring(wiring.Component):
    """Run the jobs of a ring in order.

    The unit has two jobs at a time, so that the words of one follow those of the other without a gap. When the first has ended,
    its result may still be on its way to memory; the next descriptor is fetched, checked, and written to the unit's registers,
    and its reads begin.

    Parameters
    ----------
    config
        All parameters are used.
    channel
        The direction.

    Ports
    -----
    enable, halt, ring, ring_log2, tail, head, busy
        Values of this direction's registers; ``halt``: no descriptor is fetched.
    done, lost, unknown
        Errors of :class:`~cdu.dma.record_writer.RecordWriter`.
    bad_tail, beyond
        Errors of :class:`~cdu.dma.descriptor_fetch.DescriptorFetch`.
    access
        :data:`~cdu.bus.axi_lite.AccessPort` to the unit's registers: to end a job, to start one, to write one (array).
    read_segments, read, read_result
        Streams of readers: of data, of scales.
    bursts, answer, answer_data, answer_failed
        Signals of :class:`~cdu.dma.descriptor_fetch.DescriptorFetch`.
    write_segments, write, write_result
        Streams of writers: of data, of records.
    input, scales, output
        Streams of :class:`~cdu.parts.width_converter.Bytes`: inputs and output of the unit in this direction.
    """

    enable: Signal
    halt: Signal
    ring: Signal
    ring_log2: Signal
    tail: Signal
    head: Signal
    busy: Signal
    done: Signal
    lost: Signal
    unknown: Signal
    bad_tail: Signal
    beyond: Signal
    access: Any
    read_segments: Any
    read: Any
    read_result: Any
    bursts: stream.Interface
    answer: Signal
    answer_data: Signal
    answer_failed: Signal
    write_segments: Any
    write: Any
    write_result: Any
    input: stream.Interface
    scales: stream.Interface
    output: stream.Interface

    #: Number of readers and writers of a ring, and of its ends of the unit's registers.
    readers, writers, accesses = 2, 2, 3

    def __init__(self, config: CduConfig, channel: Channel) -> None:
        self.config, self.channel, self.size = config, channel, config.dma_bits // 8
        values, packed = value_bytes(config), config.packed_bytes
        self._input, self._output = (values, packed) if channel is Channel.COMPRESS else (packed, values)
        self._scale = scale_port_bytes(config.has_offsets)
        words, segments = stream.Signature(Bytes(self.size)), stream.Signature(Segment())
        super().__init__(
            {
                "enable": In(1),
                "halt": In(1),
                "ring": In(MEMORY_ADDRESS_BITS),
                "ring_log2": In(range(MAX_RING_LOG2 + 1)),
                "tail": In(REGISTER_BITS),
                "head": Out(REGISTER_BITS),
                "busy": Out(1),
                **dict.fromkeys(("done", "lost", "unknown", "bad_tail", "beyond"), Out(1)),
                "access": Out(AccessPort).array(self.accesses),
                "read_segments": Out(segments).array(self.readers),
                "read": In(words).array(self.readers),
                "read_result": In(stream.Signature(1)).array(self.readers),
                **burst_streams(self.size),
                "write_segments": Out(segments).array(self.writers),
                "write": Out(words).array(self.writers),
                "write_result": In(stream.Signature(WriteResult())).array(self.writers),
                "input": Out(stream.Signature(Bytes(self._input))),
                "scales": Out(stream.Signature(Bytes(self._scale))),
                "output": In(stream.Signature(Bytes(self._output))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fetch = fetch = DescriptorFetch(self.size)
        m.submodules.planner = planner = JobPlanner(self.config, self.channel)
        m.submodules.feeder = feeder = JobFeeder(self.config, self.channel)
        m.submodules.programmer = programmer = JobProgrammer(self.config, self.channel)
        m.submodules.starter = starter = JobStarter(self.config, self.channel)
        m.submodules.ender = ender = JobEnder(self.channel)
        m.submodules.finisher = finisher = JobFinisher()
        m.submodules.records = records = RecordWriter(self.size)
        stages: Sequence[Any] = (fetch, planner, feeder, programmer, starter, ender, finisher, records)
        for before, after in pairwise(stages):
            connect(m, before.o, after.i)
        users: Sequence[Any] = (ender, starter, programmer)
        for stage, access in zip(users, self.access, strict=True):
            connect(m, stage.access, flipped(access))
        m.d.comb += [
            finisher.started.eq(starter.started),
            finisher.withdrawn.eq(starter.withdrawn),
        ]

        # The walks over memory, and the movers of data
        m.submodules.tensor = tensor = TensorWalk(self.config, self.channel)
        m.submodules.scale_walk = scale_walk = ScaleWalk(self.config)
        connect(m, feeder.scales, scale_walk.job)
        compresses = self.channel is Channel.COMPRESS
        connect(m, feeder.data if compresses else starter.target, tensor.job)
        first, second = (tensor.o, starter.target) if compresses else (feeder.data, tensor.o)
        for source, ours in (
            (first, self.read_segments[0]),
            (scale_walk.o, self.read_segments[1]),
            (fetch.bursts, self.bursts),
            (second, self.write_segments[0]),
            (records.segments, self.write_segments[1]),
            (records.o, self.write[1]),
        ):
            connect(m, source, flipped(ours))
        for ours, sink in (
            (self.read_result[0], feeder.read),
            (self.read_result[1], feeder.scales_read),
            (self.write_result[0], finisher.written),
            (self.write_result[1], records.result),
        ):
            connect(m, flipped(ours), sink)

        connect(m, feeder.result, ender.read)
        self._words(m, starter, ender)
        self._ring(m, fetch, (fetch, ender, finisher), records)
        return m

    def _words(self, m: Module, starter: JobStarter, ender: JobEnder) -> None:
        """Convert words of memory to words of the unit, which pass when their job has its START, and words of results back."""
        m.submodules.to_unit = to_unit = WidthConverter(self.size, self._input)
        m.submodules.to_scales = to_scales = ScaleWords(self.config, self.size)
        m.submodules.of_unit = of_unit = WidthConverter(self._output, self.size)
        # Slices end the paths from a reader to the unit and back, and from the unit to a writer.
        m.submodules.of_memory = of_memory = register_slice(Bytes(self.size))
        m.submodules.to_memory = to_memory = register_slice(Bytes(self.size))
        connect(m, flipped(self.read[0]), of_memory.i)
        connect(m, of_memory.o, to_unit.i)
        connect(m, flipped(self.read[1]), to_scales.i)
        for number, (name, size, words, ours) in enumerate(
            (("input", self._input, to_unit.o, self.input), ("scales", self._scale, to_scales.o, self.scales))
        ):
            m.submodules[f"{name}_gate"] = gate = PacketGate(size)
            connect(m, words, gate.i)
            connect(m, gate.o, flipped(ours))
            m.submodules[f"{name}_passages"] = passages = StreamFifo(Passage(), DMA_JOBS)
            connect(m, starter.passages[number], passages.i)
            connect(m, passages.o, gate.passages)
        result = self.output
        m.d.comb += [
            to_scales.wide.eq(passages.o.payload["wide"]),
            ender.given.eq(result.valid & result.ready & result.payload["last"]),
        ]
        connect(m, flipped(self.output), of_unit.i)
        connect(m, of_unit.o, to_memory.i)
        connect(m, to_memory.o, flipped(self.write[0]))

    def _ring(self, m: Module, fetch: DescriptorFetch, stages: Sequence[Any], records: RecordWriter) -> None:
        """Join the fetch of descriptors and the writer of records to the registers of the ring; ``head`` counts records."""
        m.d.comb += [
            fetch.enable.eq(self.enable & ~self.halt),
            fetch.head.eq(self.head),
            fetch.ring.eq(self.ring),
            fetch.ring_log2.eq(self.ring_log2),
            fetch.tail.eq(self.tail),
            *(getattr(fetch, name).eq(getattr(self, name)) for name in ("answer", "answer_data", "answer_failed")),
            self.busy.eq(Cat(stage.working for stage in stages).any()),
            fetch.rewind.eq(~self.enable & ~self.busy),
            self.done.eq(records.done),
            self.lost.eq(records.lost),
            self.unknown.eq(records.unknown),
            self.bad_tail.eq(fetch.bad_tail),
            self.beyond.eq(fetch.beyond),
        ]
        with m.If(fetch.rewind):
            m.d.sync += self.head.eq(0)
        with m.Elif(records.done):
            m.d.sync += self.head.eq(self.head + 1)
