"""Counter of the jobs in progress in one direction of a unit."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from cdu.words import Job


class JobCount(wiring.Component):
    """Let jobs pass while fewer than ``depth`` are in progress.

    Ports
    -----
    i, o
        Streams of :class:`~cdu.words.Job`, without latency.
    done
        High for a cycle when the oldest job ends.
    idle
        No job is in progress.
    """

    i: stream.Interface
    o: stream.Interface
    done: Signal
    idle: Signal

    depth = 15

    def __init__(self) -> None:
        job = stream.Signature(Job())
        super().__init__({"i": In(job), "o": Out(job), "done": In(1), "idle": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = Signal(range(self.depth + 1))
        room = count != self.depth
        m.d.comb += [
            self.idle.eq(count == 0),
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(self.i.valid & room),
            self.i.ready.eq(self.o.ready & room),
        ]
        # Both sums are there when it turns out, late, that a job passes.
        passes = self.i.valid & self.i.ready
        m.d.sync += count.eq(Mux(passes, count + 1 - self.done, count - self.done))
        return m
