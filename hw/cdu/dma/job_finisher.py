"""End of a job: its result is in memory."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config_rules import DMA_JOBS
from cdu_spec.dma import SIZE_BITS
from cdu_spec.register_types import REGISTER_BITS

from cdu.dma.memory_writer import WriteResult
from cdu.dma.records import Ended, Outcome

#: Jobs with a START and without a record: those in the unit, and the one that waits for memory.
_STARTED = DMA_JOBS + 1


class JobFinisher(wiring.Component):
    """Wait until the result of a job is in memory, and make its record; meanwhile the unit has the next jobs.

    Ports
    -----
    started, withdrawn
        High for a cycle: a job is given its START; the unit has refused it.
    i
        Stream of :class:`~cdu.dma.records.Ended`.
    written
        Stream of writers' results for the job's result.
    o
        Stream of :class:`~cdu.dma.records.Outcome`.
    working
        A job has no record yet.
    """

    started: Signal
    withdrawn: Signal
    i: stream.Interface
    written: stream.Interface
    o: stream.Interface
    working: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                **dict.fromkeys(("started", "withdrawn"), In(1)),
                "i": In(stream.Signature(Ended())),
                "written": In(stream.Signature(WriteResult())),
                "o": Out(stream.Signature(Outcome())),
                "working": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        job: Any = Signal(Ended(), reset_less=True)
        size = Signal(SIZE_BITS)
        taken = Signal(REGISTER_BITS)
        waits = Signal()
        cycles = self._cycles(m)
        outcome, result = self.o.payload, self.written.payload
        record, errors = outcome["record"], job["errors"]
        m.d.comb += [
            self.i.ready.eq(~self.working),
            self.written.ready.eq(waits),
            self.o.valid.eq(self.working & ~waits),
            *(outcome[name].eq(job[name]) for name in ("address", "nowhere", "failed")),
            *(record[name].eq(job[name]) for name in ("job", "tag", "errors", "unit_errors")),
            record["cycles"].eq(taken),
            record["bytes"].eq(size),
            record["done"].eq(1),
        ]
        with m.If(~self.working):
            m.d.sync += [job.eq(self.i.payload), size.eq(0), taken.eq(0), self.working.eq(self.i.valid)]
            m.d.sync += waits.eq(self.i.valid & self.i.payload["started"])
        with m.If(waits & self.written.valid):
            m.d.sync += [
                waits.eq(0),
                size.eq(result["bytes"]),
                taken.eq(cycles),
                errors["write"].eq(result["failed"]),
                errors["overflow"].eq(result["surplus"]),
            ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += self.working.eq(0)
        return m

    def _cycles(self, m: Module) -> Value:
        """Return the cycles of the job whose result is written: from its START, or the end of the job before it, to its end."""
        under_way = Signal(range(_STARTED + 1))  # jobs with a START whose results are not in memory
        ended = Signal()  # the result that waits has been in memory for a cycle or more
        ends = self.written.valid & ~ended
        cycles = Signal(REGISTER_BITS, init=1)
        last = Signal(REGISTER_BITS)
        m.d.sync += [
            under_way.eq(under_way + self.started - self.withdrawn - ends),
            ended.eq(self.written.valid & ~self.written.ready),
            cycles.eq(Mux((under_way != 0) & ~ends, cycles + 1, 1)),
        ]
        with m.If(ends):
            m.d.sync += last.eq(cycles)
        return Mux(ended, last, cycles)
