"""End of a job in the unit, and its errors there."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config_rules import DMA_JOBS
from cdu_spec.register_types import Channel
from cdu_spec.registers import register

from cdu.bus.axi_lite import AccessPort
from cdu.dma.records import Ended, ran
from cdu.dma.unit_access import ask


class JobEnder(wiring.Component):
    """Wait until the unit is done with a job, and take the errors of the job from the unit's record of it.

    Parameters
    ----------
    channel
        The direction.

    Ports
    -----
    i
        Stream of :class:`~cdu.dma.records.Ended` with the errors known before: of the descriptor and of START.
    access
        :data:`~cdu.bus.axi_lite.AccessPort`.
    given
        High for a cycle: the last word of a result leaves the unit.
    read
        Stream, one transfer for each job that can be run: whether a read failed.
    o
        Stream of :class:`~cdu.dma.records.Ended`.
    working
        A job has not been passed on.
    """

    i: stream.Interface
    access: Any
    given: Signal
    read: stream.Interface
    o: stream.Interface
    working: Signal

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        jobs = stream.Signature(Ended())
        super().__init__(
            {
                "i": In(jobs),
                "access": Out(AccessPort),
                "given": In(1),
                "read": In(stream.Signature(1)),
                "o": Out(jobs),
                "working": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        job: Any = Signal(Ended(), reset_less=True)
        reads = Signal()
        results = Signal(range(DMA_JOBS + 1))  # that have left the unit, of jobs that have not ended
        takes = Signal()
        outcome, found = self.o.payload, self.access.read_data
        m.d.comb += [
            outcome.eq(job),
            outcome["errors"]["unit"].eq(job["unit_errors"].any()),
            self.read.ready.eq(reads),
        ]
        m.d.sync += results.eq(results + self.given - takes)
        with m.If(reads & self.read.valid):
            m.d.sync += [reads.eq(0), job["errors"]["read"].eq(self.read.payload)]
        with m.FSM() as states:
            m.d.comb += self.working.eq(~states.ongoing("REST"))
            with m.State("REST"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [job.eq(self.i.payload), reads.eq(self.i.valid & ran(self.i.payload))]
                with m.If(self.i.valid):
                    m.next = "GIVE"
                    with m.If(self.i.payload["started"]):
                        m.next = "WAIT"
            with m.State("WAIT"):
                m.d.comb += takes.eq(results != 0)
                with m.If(takes):
                    m.next = "LOOK"
            with m.State("LOOK"):  # its input may have more words than its result needs
                m.d.comb += ask(self.access, self.channel, "COMPLETION")
                with m.If(self.access.done & (register("COMPLETION").field("waiting").get(found) != 0)):
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += ask(self.access, self.channel, "COMPLETION_ERRORS")
                with m.If(self.access.done):
                    m.d.sync += job["unit_errors"].eq(found)
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.comb += ask(self.access, self.channel, "COMPLETION_NEXT", register("COMPLETION_NEXT").pack(take=1))
                with m.If(self.access.done):
                    m.next = "GIVE"
                    with m.If(job["unit_errors"].any()):
                        m.next = "CLEAR"
            with m.State("CLEAR"):
                m.d.comb += ask(self.access, self.channel, "ERRORS", job["unit_errors"])
                with m.If(self.access.done):
                    m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += self.o.valid.eq(~reads)
                with m.If(self.o.valid & self.o.ready):
                    m.next = "REST"
        return m
