"""Execution of a job from its START to its last word."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.register_types import REGISTER_BITS, REGISTER_BYTES, Channel
from cdu_spec.registers import address, register

from cdu.bus.axi_lite import AccessPort
from cdu.dma.records import KINDS, Ended, Planned, TensorJob, kinds, payload_segment, runs, tensor_job
from cdu.dma.segments import Segment

#: Errors of START, after which nothing was queued.
_REFUSALS = ("bad_job", "bad_length", "queue_full")
_REFUSED = sum(register("ERRORS").field(name).mask for name in _REFUSALS)
#: Cycles from the last word of a packet until every error that it may cause is in ERRORS.
_SETTLE_CYCLES = 16


class _Run:
    """Registers of the job in progress."""

    def __init__(self) -> None:
        self.job: Any = Signal(Planned(), reset_less=True, name="job")
        self.kind = {name: Signal(name=name) for name in KINDS}
        # Transfers that the unit has yet to take and to give, and the cycles since the last one
        self.comes = [Signal(name=f"{name}_comes") for name in ("data", "scales", "result")]
        self.placed = Signal(name="placed")
        self.wait = Signal(range(_SETTLE_CYCLES + 1), name="wait")
        self.unit_errors = Signal(REGISTER_BITS, name="unit_errors")
        self.cycles = Signal(REGISTER_BITS, name="cycles")
        self.reads = Signal(name="reads")
        self.started = Signal(name="started")
        self.ahead = Signal(name="ahead")  # the next job has had its START
        self.refused = Signal(REGISTER_BITS, name="refused")  # errors of the next job's START


class JobRunner(wiring.Component):
    """Start a job, let its packets through, and read the unit's errors.

    The unit has the words of one job at a time, so that every error belongs to one job. The next job has its START when all
    words of this one are in the unit, but its words pass only when this one is done; errors of START differ from errors of
    words. Data that were read for a refused job are dropped.

    Parameters
    ----------
    config
        Modes of the unit.
    channel
        The direction.

    Ports
    -----
    i
        Stream of :class:`~cdu.dma.records.Planned`: jobs whose registers are written and whose reads have begun, or that
        cannot be run.
    access
        :data:`~cdu.bus.axi_lite.AccessPort`.
    opens, drops, ends
        Signals of the :class:`~cdu.dma.packet_gate.PacketGate` of the data and of that of the scales (arrays).
    wide
        The scales have offsets beside them.
    target
        Stream of destinations of results: the payload's :class:`~cdu.dma.segments.Segment`, or a
        :class:`~cdu.dma.records.TensorJob`.
    given, stored
        The last word of the result has left the unit; all of it is in memory.
    read
        Stream, one transfer for each job that can be run: whether a read failed.
    o
        Stream of :class:`~cdu.dma.records.Ended`.
    working
        A job is in progress.
    """

    i: stream.Interface
    access: Any
    opens: Any
    drops: Any
    ends: Any
    wide: Signal
    target: stream.Interface
    given: Signal
    stored: Signal
    read: stream.Interface
    o: stream.Interface
    working: Signal

    def __init__(self, config: CduConfig, channel: Channel) -> None:
        self.channel = channel
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(Planned())),
                "access": Out(AccessPort),
                "opens": Out(1).array(2),
                "drops": Out(1).array(2),
                "ends": In(1).array(2),
                "wide": Out(1),
                "target": Out(stream.Signature(Segment() if channel is Channel.COMPRESS else TensorJob())),
                **dict.fromkeys(("given", "stored"), In(1)),
                "read": In(stream.Signature(1)),
                "o": Out(stream.Signature(Ended())),
                "working": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        run = _Run()
        job, kind, comes = run.job, run.kind, run.comes
        errors = job["errors"]
        to_tensor = self.channel is Channel.DECOMPRESS
        m.d.comb += self.wide.eq(kind["wide"])
        m.d.comb += tensor_job(self.target.payload, job, kind) if to_tensor else payload_segment(self.target.payload, job)
        with m.If(Cat(comes).any()):
            m.d.sync += run.wait.eq(_SETTLE_CYCLES)
        with m.Elif(run.wait != 0):
            m.d.sync += run.wait.eq(run.wait - 1)
        for packet, ends in zip(comes, (*self.ends, self.given), strict=True):
            with m.If(ends):
                m.d.sync += packet.eq(0)
        m.d.comb += [self.target.valid.eq(run.placed), self.read.ready.eq(run.reads)]
        with m.If(self.target.ready):
            m.d.sync += run.placed.eq(0)
        with m.If(run.reads & self.read.valid):
            m.d.sync += [run.reads.eq(0), errors["read"].eq(self.read.payload)]
        self._tell(m, run)
        with m.FSM() as states:
            m.d.comb += self.working.eq(~states.ongoing("REST"))
            m.d.sync += run.cycles.eq(Mux(self.working, run.cycles + ~self.stored, 0))
            self._begin(m, run)
            self._pass(m, run)
            self._end(m, run)
        return m

    def _tell(self, m: Module, run: _Run) -> None:
        """Make the outcome of the job."""
        job: Any = run.job
        ended: Any = self.o.payload
        descriptor = job["fetched"]["descriptor"]
        m.d.comb += [
            ended["address"].eq(descriptor["completion"]),
            *(ended[name].eq(job[name]) for name in ("nowhere", "errors")),
            ended["failed"].eq(job["fetched"]["failed"]),
            ended["job"].eq(job["fetched"]["number"]),
            ended["tag"].eq(descriptor["tag"]),
            ended["unit_errors"].eq(run.unit_errors),
            ended["cycles"].eq(run.cycles),
            ended["written"].eq(run.started),
        ]

    def _begin(self, m: Module, run: _Run) -> None:
        """Take a job and start it, unless it had its START while the job before was under way."""
        starts = runs(self.i.payload)
        with m.State("REST"):
            m.d.comb += self.i.ready.eq(1)
            mode = self.i.payload["fetched"]["descriptor"]["mode"]
            m.d.sync += [run.kind[name].eq(is_so) for name, is_so in kinds(self.config, mode).items()]
            m.d.sync += [run.job.eq(self.i.payload), run.unit_errors.eq(run.refused), run.refused.eq(0), run.started.eq(0)]
            with m.If(self.i.valid):
                m.d.sync += [run.ahead.eq(0), run.reads.eq(starts)]
                m.next = "GIVE"
                with m.If(starts):
                    m.next = "START"
                with m.If(starts & run.ahead):
                    m.next = "BEGIN"
        with m.State("START"):
            self._start(m)
            with m.If(self.access.done):
                m.next = "CHECK"
        with m.State("CHECK"):
            self._access(m, "ERRORS")
            with m.If(self.access.done):
                m.d.sync += run.unit_errors.eq(self.access.read_data)
                m.next = "BEGIN"
        with m.State("BEGIN"):
            m.d.sync += [run.comes[0].eq(1), run.comes[1].eq(run.kind["has_scales"])]
            with m.If(run.unit_errors & _REFUSED):
                m.next = "DROP"
            with m.Else():
                m.d.sync += [run.comes[2].eq(1), run.placed.eq(1), run.started.eq(1)]
                m.next = "RUN"

    def _pass(self, m: Module, run: _Run) -> None:
        """Let the packets of the job through and start the next job behind them, or drop the packets."""
        packets = run.comes[:-1]
        over = ~Cat(run.comes, run.reads, run.placed).any()  # the receiver of ``target`` reads the job until then
        with m.State("RUN"):
            m.d.comb += [opens.eq(packet) for opens, packet in zip(self.opens, packets, strict=True)]
            with m.If(over & (run.wait == 0)):
                m.next = "LOOK"
            with m.Elif(~Cat(packets).any() & ~run.ahead & self.i.valid & runs(self.i.payload)):
                m.next = "AHEAD"
        with m.State("AHEAD"):
            self._start(m)
            with m.If(self.access.done):
                m.d.sync += run.ahead.eq(1)
                m.next = "RUN"
        with m.State("DROP"):
            m.d.comb += [drops.eq(packet) for drops, packet in zip(self.drops, packets, strict=True)]
            with m.If(over):
                m.next = "CLEAR"

    def _end(self, m: Module, run: _Run) -> None:
        """Read and clear the errors of the unit, and give the outcome."""
        found = self.access.read_data
        with m.State("LOOK"):
            self._access(m, "ERRORS")
            with m.If(self.access.done):
                m.d.sync += [run.unit_errors.eq(run.unit_errors | (found & ~_REFUSED)), run.refused.eq(found & _REFUSED)]
                m.next = "CLEAR"
        with m.State("CLEAR"):
            m.d.sync += run.job["errors"]["unit"].eq(run.unit_errors != 0)
            with m.If((run.unit_errors | run.refused) == 0):
                m.next = "GIVE"
            with m.Else():
                self._access(m, "ERRORS", run.unit_errors | run.refused)
                with m.If(self.access.done):
                    m.next = "GIVE"
        with m.State("GIVE"):
            m.d.comb += self.o.valid.eq(1)
            with m.If(self.o.ready):
                m.next = "REST"

    def _start(self, m: Module) -> None:
        """Move the job whose registers are written to the unit."""
        self._access(m, "CONTROL", register("CONTROL").pack(start=1))

    def _access(self, m: Module, name: str, value: Any = None) -> None:
        """Request a read of a register, or a write."""
        m.d.comb += [
            self.access.active.eq(1),
            self.access.word.eq(address(name, self.channel) // REGISTER_BYTES),
            self.access.write.eq(int(value is not None)),
            self.access.whole.eq(1),
            self.access.data.eq(0 if value is None else value),
        ]
