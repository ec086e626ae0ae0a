"""Check of the length of every payload against the one in its job's registers."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.register_types import REGISTER_BITS

from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.wide_sum import wide_sum
from cdu.words import PackedWord


class ExpectedLength(data.StructLayout):
    """The ``length`` of a job's payload in bytes, modulo ``2**32``, where it is ``known``."""

    def __init__(self) -> None:
        super().__init__({"length": REGISTER_BITS, "known": 1})


class PayloadLength(wiring.Component):
    """Let payload pass from the start of its job on, and count its bytes.

    Parameters
    ----------
    config
        M is used.

    Ports
    -----
    job
        Stream of :class:`ExpectedLength`, one per job; ready while it has room for one more.
    i, o
        Streams of :class:`~cdu.words.PackedWord`, without latency; a packet per job.
    payload_length
        High for a cycle, two cycles after the last word of a packet, if its length is not the expected one.
    """

    job: stream.Interface
    i: stream.Interface
    o: stream.Interface
    payload_length: Signal

    #: Number of jobs whose packet has not passed.
    depth = 4

    def __init__(self, config: CduConfig) -> None:
        words = stream.Signature(PackedWord(config))
        job = stream.Signature(ExpectedLength())
        super().__init__({"job": In(job), "i": In(words), "o": Out(words), "payload_length": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.jobs = jobs = StreamFifo(ExpectedLength(), self.depth)
        connect(m, flipped(self.job), jobs.i)
        transfer = Signal()
        ends = Signal()
        m.d.comb += [
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(self.i.valid & jobs.o.valid),
            self.i.ready.eq(self.o.ready & jobs.o.valid),
            transfer.eq(self.o.valid & self.o.ready),
            ends.eq(transfer & self.i.payload["last"]),
            jobs.o.ready.eq(ends),
        ]

        amount = Signal.like(self.i.payload["count"])
        ended = Signal()
        expected: Any = Signal(ExpectedLength(), reset_less=True)
        m.d.sync += [amount.eq(Mux(transfer, self.i.payload["count"], 0)), ended.eq(ends), expected.eq(jobs.o.payload)]
        so_far = Signal(REGISTER_BITS)
        length = Signal(REGISTER_BITS)
        m.d.comb += length.eq(wide_sum(so_far, amount, REGISTER_BITS))
        m.d.sync += [
            so_far.eq(Mux(ended, 0, length)),
            self.payload_length.eq(ended & expected.known & (length != expected.length)),
        ]
        return m
