"""Execution of a job from its START to its last word."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.registers import REGISTER_BITS, REGISTER_BYTES, Channel, address, register

from cdu.bus.axi_lite import AccessPort
from cdu.dma.records import KINDS, Ended, Planned, TensorJob, kinds, payload_segment, runs, tensor_job
from cdu.dma.segments import Segment

#: Errors of START, after which nothing was queued.
_REFUSALS = ("bad_job", "bad_length", "queue_full")
#: Cycles from the last word of a packet until every error that it may cause is in ERRORS.
_SETTLE_CYCLES = 16


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
        job: Any = Signal(Planned(), reset_less=True)
        descriptor, errors = job["fetched"]["descriptor"], job["errors"]
        kind = {name: Signal(name=name) for name in KINDS}
        to_tensor = self.channel is Channel.DECOMPRESS
        m.d.comb += self.wide.eq(kind["wide"])
        m.d.comb += tensor_job(self.target.payload, job, kind) if to_tensor else payload_segment(self.target.payload, job)

        # Transfers that the unit has yet to take and to give, and the cycles since the last one
        comes = [Signal(name=f"{name}_comes") for name in ("data", "scales", "result")]
        placed = Signal()
        wait = Signal(range(_SETTLE_CYCLES + 1))
        unit_errors = Signal(REGISTER_BITS)
        cycles = Signal(REGISTER_BITS)
        reads = Signal()
        started = Signal()
        ahead = Signal()  # the next job has had its START
        with m.If(Cat(comes).any()):
            m.d.sync += wait.eq(_SETTLE_CYCLES)
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        for packet, ends in zip(comes, (*self.ends, self.given), strict=True):
            with m.If(ends):
                m.d.sync += packet.eq(0)
        m.d.comb += [self.target.valid.eq(placed), self.read.ready.eq(reads)]
        with m.If(self.target.ready):
            m.d.sync += placed.eq(0)
        with m.If(reads & self.read.valid):
            m.d.sync += [reads.eq(0), errors["read"].eq(self.read.payload)]
        over = ~Cat(comes, reads, placed).any()  # the receiver of ``target`` reads the job until then

        ended: Any = self.o.payload
        m.d.comb += [
            ended["address"].eq(descriptor["completion"]),
            *(ended[name].eq(job[name]) for name in ("nowhere", "errors")),
            ended["failed"].eq(job["fetched"]["failed"]),
            ended["job"].eq(job["fetched"]["number"]),
            ended["tag"].eq(descriptor["tag"]),
            ended["unit_errors"].eq(unit_errors),
            ended["cycles"].eq(cycles),
            ended["written"].eq(started),
        ]
        refusals = sum(register("ERRORS").field(name).mask for name in _REFUSALS)
        found = self.access.read_data
        refused = Signal(REGISTER_BITS)  # errors of the next job's START
        starts = runs(self.i.payload)
        with m.FSM() as states:
            m.d.comb += self.working.eq(~states.ongoing("REST"))
            m.d.sync += cycles.eq(Mux(self.working, cycles + ~self.stored, 0))
            with m.State("REST"):
                m.d.comb += self.i.ready.eq(1)
                mode = self.i.payload["fetched"]["descriptor"]["mode"]
                m.d.sync += [kind[name].eq(is_so) for name, is_so in kinds(self.config, mode).items()]
                m.d.sync += [job.eq(self.i.payload), unit_errors.eq(refused), refused.eq(0), started.eq(0)]
                with m.If(self.i.valid):
                    m.d.sync += [ahead.eq(0), reads.eq(starts)]
                    m.next = "GIVE"
                    with m.If(starts):
                        m.next = "START"
                    with m.If(starts & ahead):
                        m.next = "BEGIN"
            with m.State("START"):
                self._start(m)
                with m.If(self.access.done):
                    m.next = "CHECK"
            with m.State("CHECK"):
                self._access(m, "ERRORS")
                with m.If(self.access.done):
                    m.d.sync += unit_errors.eq(found)
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.sync += [comes[0].eq(1), comes[1].eq(kind["has_scales"])]
                with m.If(unit_errors & refusals):
                    m.next = "DROP"
                with m.Else():
                    m.d.sync += [comes[2].eq(1), placed.eq(1), started.eq(1)]
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += [opens.eq(packet) for opens, packet in zip(self.opens, comes[:-1], strict=True)]
                with m.If(over & (wait == 0)):
                    m.next = "LOOK"
                with m.Elif(~Cat(comes[:-1]).any() & ~ahead & self.i.valid & starts):
                    m.next = "AHEAD"
            with m.State("AHEAD"):
                self._start(m)
                with m.If(self.access.done):
                    m.d.sync += ahead.eq(1)
                    m.next = "RUN"
            with m.State("DROP"):
                m.d.comb += [drops.eq(packet) for drops, packet in zip(self.drops, comes[:-1], strict=True)]
                with m.If(over):
                    m.next = "CLEAR"
            with m.State("LOOK"):
                self._access(m, "ERRORS")
                with m.If(self.access.done):
                    m.d.sync += [unit_errors.eq(unit_errors | (found & ~refusals)), refused.eq(found & refusals)]
                    m.next = "CLEAR"
            with m.State("CLEAR"):
                m.d.sync += errors["unit"].eq(unit_errors != 0)
                with m.If((unit_errors | refused) == 0):
                    m.next = "GIVE"
                with m.Else():
                    self._access(m, "ERRORS", unit_errors | refused)
                    with m.If(self.access.done):
                        m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "REST"
        return m

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
