"""End of a job: its result is in memory."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from cdu.dma.memory_writer import WriteResult
from cdu.dma.records import Ended, Outcome


class JobFinisher(wiring.Component):
    """Wait until the result of a job is in memory, and make its record; meanwhile the unit has the next job.

    Ports
    -----
    i
        Stream of :class:`~cdu.dma.records.Ended`.
    written
        Stream of writers' results for the job's result.
    o
        Stream of :class:`~cdu.dma.records.Outcome`.
    working
        A job has no record yet.
    """

    i: stream.Interface
    written: stream.Interface
    o: stream.Interface
    working: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(Ended())),
                "written": In(stream.Signature(WriteResult())),
                "o": Out(stream.Signature(Outcome())),
                "working": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        job: Any = Signal(Ended(), reset_less=True)
        size = Signal.like(job["cycles"], name="size")
        waits = Signal()
        outcome, result = self.o.payload, self.written.payload
        record, errors = outcome["record"], job["errors"]
        m.d.comb += [
            self.i.ready.eq(~self.working),
            self.written.ready.eq(waits),
            self.o.valid.eq(self.working & ~waits),
            *(outcome[name].eq(job[name]) for name in ("address", "nowhere", "failed")),
            *(record[name].eq(job[name]) for name in ("job", "tag", "errors", "unit_errors", "cycles")),
            record["bytes"].eq(size),
            record["done"].eq(1),
        ]
        with m.If(~self.working):
            m.d.sync += [job.eq(self.i.payload), size.eq(0), self.working.eq(self.i.valid)]
            m.d.sync += waits.eq(self.i.valid & self.i.payload["written"])
        with m.If(waits):
            m.d.sync += job["cycles"].eq(Mux(self.written.valid, job["cycles"], job["cycles"] + 1))
            with m.If(self.written.valid):
                m.d.sync += [
                    waits.eq(0),
                    size.eq(result["bytes"]),
                    errors["write"].eq(result["failed"]),
                    errors["overflow"].eq(result["surplus"]),
                ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += self.working.eq(0)
        return m
