"""Fetch of descriptors from a ring."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2
from cdu_spec.dma import DESCRIPTOR_BYTES, MAX_RING_LOG2, MEMORY_ADDRESS_BITS
from cdu_spec.register_types import REGISTER_BITS

from cdu.dma.axi4 import Burst
from cdu.dma.records import Fetched


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
    bursts
        Stream of :class:`~cdu.dma.axi4.Burst`, one for a descriptor.
    answer, answer_data, answer_failed
        A requested word has come; memory reports an error of it.
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
    bursts: stream.Interface
    answer: Signal
    answer_data: Signal
    answer_failed: Signal
    o: stream.Interface
    working: Signal
    rewind: Signal

    def __init__(self, size: int) -> None:
        #: Words of a descriptor, a power of two.
        self.size, self.words = size, DESCRIPTOR_BYTES // size
        super().__init__(
            {
                "enable": In(1),
                "ring": In(MEMORY_ADDRESS_BITS),
                "ring_log2": In(range(MAX_RING_LOG2 + 1)),
                "tail": In(REGISTER_BITS),
                "head": In(REGISTER_BITS),
                "bad_tail": Out(1),
                "beyond": Out(1),
                "bursts": Out(stream.Signature(Burst())),
                "answer": In(1),
                "answer_data": In(8 * size),
                "answer_failed": In(1),
                "o": Out(stream.Signature(Fetched())),
                "working": Out(1),
                "rewind": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fetched: Any = self.o.payload
        number = Signal(REGISTER_BITS)
        words = [Signal(8 * self.size, name=f"word{place}", reset_less=True) for place in range(self.words)]
        word = Signal(range(self.words))  # the word that comes next
        failed = Signal()
        places = Signal(MAX_RING_LOG2 + 1)
        address = Signal(MEMORY_ADDRESS_BITS + 1)
        # Place of the next descriptor in the ring, and distances of TAIL from HEAD and from that descriptor, modulo 2**32,
        # when it was sampled
        place = Signal(MAX_RING_LOG2, reset_less=True)
        given = Signal(REGISTER_BITS, reset_less=True)
        waiting = Signal(REGISTER_BITS, reset_less=True)
        rung = (given <= places) & (waiting <= places)
        m.d.comb += [
            places.eq(1 << self.ring_log2),
            address.eq(self.ring + (place << exact_log2(DESCRIPTOR_BYTES))),
            self.bursts.payload["address"].eq(address),
            self.bursts.payload["words"].eq(self.words),
            fetched["descriptor"].eq(Cat(words)),
            fetched["number"].eq(number),
            fetched["failed"].eq(failed),
        ]
        with m.If(self.answer):
            m.d.sync += word.eq(word + 1)
            with m.Switch(word):
                for turn, kept in enumerate(words):
                    with m.Case(turn):
                        m.d.sync += kept.eq(self.answer_data)
        with m.If(self.rewind):
            m.d.sync += number.eq(0)
        with m.FSM() as states:
            m.d.comb += self.working.eq(~states.ongoing("REST"))
            with m.State("REST"):
                m.d.sync += [place.eq(number & (places - 1)), given.eq(self.tail - self.head), waiting.eq(self.tail - number)]
                with m.If(self.enable & (number != self.tail)):
                    m.next = "JUDGE"
            with m.State("JUDGE"):
                m.d.comb += [self.bad_tail.eq(self.enable & ~rung), self.beyond.eq(self.enable & rung & address[-1])]
                m.next = "REST"
                with m.If(self.enable & rung & ~address[-1]):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += self.bursts.valid.eq(1)
                m.d.sync += failed.eq(0)
                with m.If(self.bursts.ready):
                    m.next = "READ"
            with m.State("READ"), m.If(self.answer):
                m.d.sync += failed.eq(failed | self.answer_failed)
                with m.If(word == self.words - 1):
                    m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.sync += number.eq(number + 1)
                    m.next = "REST"
        return m
