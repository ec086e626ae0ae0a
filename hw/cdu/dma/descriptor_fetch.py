"""Fetch of descriptors from a ring."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2
from cdu_spec.dma import DESCRIPTOR_BYTES, MAX_RING_LOG2, MEMORY_ADDRESS_BITS
from cdu_spec.registers import REGISTER_BITS

from cdu.dma.records import Fetched
from cdu.dma.segments import Segment
from cdu.parts.width_converter import Bytes


class DescriptorFetch(wiring.Component):
    """Read one descriptor after the other while there are any; the registers are checked before each of them.

    Parameters
    ----------
    size
        Bytes of a word of memory.

    Ports
    -----
    enable, ring, ring_log2, tail, head
        Values of the registers (:data:`cdu_spec.dma.DMA_CHANNEL`). Without ``enable`` no descriptor is requested.
    bad_tail, beyond
        High for a cycle, and the next descriptor is not read: TAIL is more than the number of places ahead of HEAD, or behind
        the next descriptor; the next descriptor would be beyond the last address.
    segments, i, result
        Streams to and from a :class:`~cdu.dma.memory_reader.MemoryReader`.
    o
        Stream of :class:`~cdu.dma.records.Fetched`; the next descriptor is read when this one has been taken.
    working
        A descriptor is being read, or waits.
    rewind
        Restart with number 0; must be low with ``enable`` and while ``working``.
    """

    enable: Signal
    ring: Signal
    ring_log2: Signal
    tail: Signal
    head: Signal
    bad_tail: Signal
    beyond: Signal
    segments: stream.Interface
    i: stream.Interface
    result: stream.Interface
    o: stream.Interface
    working: Signal
    rewind: Signal

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__(
            {
                "enable": In(1),
                "ring": In(MEMORY_ADDRESS_BITS),
                "ring_log2": In(range(MAX_RING_LOG2 + 1)),
                "tail": In(REGISTER_BITS),
                "head": In(REGISTER_BITS),
                "bad_tail": Out(1),
                "beyond": Out(1),
                "segments": Out(stream.Signature(Segment())),
                "i": In(stream.Signature(Bytes(size))),
                "result": In(stream.Signature(1)),
                "o": Out(stream.Signature(Fetched())),
                "working": Out(1),
                "rewind": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fetched: Any = self.o.payload
        number = Signal(REGISTER_BITS)
        content = Signal(8 * DESCRIPTOR_BYTES)
        failed = Signal()
        place = Signal(MAX_RING_LOG2)
        places = Signal(MAX_RING_LOG2 + 1)
        address = Signal(MEMORY_ADDRESS_BITS + 1)
        # Distance of TAIL from HEAD and from the next descriptor, modulo 2**32, when it was sampled
        given = Signal(REGISTER_BITS, reset_less=True)
        waiting = Signal(REGISTER_BITS, reset_less=True)
        rung = (given <= places) & (waiting <= places)
        m.d.comb += [
            places.eq(1 << self.ring_log2),
            place.eq(number & (places - 1)),
            address.eq(self.ring + (place << exact_log2(DESCRIPTOR_BYTES))),
            self.segments.payload["address"].eq(address),
            self.segments.payload["bytes"].eq(DESCRIPTOR_BYTES),
            self.segments.payload["last"].eq(1),
            fetched["descriptor"].eq(content),
            fetched["number"].eq(number),
            fetched["failed"].eq(failed),
            self.i.ready.eq(1),
            self.result.ready.eq(1),
        ]
        with m.If(self.i.valid):
            m.d.sync += content.eq(Cat(content[8 * self.size :], self.i.payload["data"]))
        with m.If(self.rewind):
            m.d.sync += number.eq(0)
        with m.FSM() as states:
            m.d.comb += self.working.eq(~states.ongoing("REST"))
            with m.State("REST"):
                m.d.sync += [given.eq(self.tail - self.head), waiting.eq(self.tail - number)]
                with m.If(self.enable & (number != self.tail)):
                    m.next = "JUDGE"
            with m.State("JUDGE"):
                m.d.comb += [self.bad_tail.eq(self.enable & ~rung), self.beyond.eq(self.enable & rung & address[-1])]
                m.next = "REST"
                with m.If(self.enable & rung & ~address[-1]):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += self.segments.valid.eq(1)
                with m.If(self.segments.ready):
                    m.next = "READ"
            with m.State("READ"), m.If(self.result.valid):
                m.d.sync += failed.eq(self.result.payload)
                m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.sync += number.eq(number + 1)
                    m.next = "REST"
        return m
