"""Start of a job, while the unit still has the one before it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.register_types import REGISTER_BITS, Channel
from cdu_spec.registers import register

from cdu.bus.axi_lite import AccessPort
from cdu.dma.packet_gate import Passage
from cdu.dma.records import Ended, Planned, TensorJob, kinds, payload_segment, runs, tensor_job
from cdu.dma.segments import Segment
from cdu.dma.unit_access import ask

#: Errors of START, after which nothing was queued.
_REFUSALS = ("bad_job", "bad_length", "queue_full")
_REFUSED = sum(register("ERRORS").field(name).mask for name in _REFUSALS)


class JobStarter(wiring.Component):
    """Give a job its START, let its packets pass, and tell the destination of its result.

    A job has its START while the one before it is in the unit, and its words follow that job's. It is passed on when that job
    has ended and the destination of its result is no longer needed. Data that were read for a job that the unit refuses are
    dropped.

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
        cannot be run. A job is taken with the transfer at ``o``.
    access
        :data:`~cdu.bus.axi_lite.AccessPort`.
    passages
        Streams of :class:`~cdu.dma.packet_gate.Passage`, one for each packet of data and one for each of scales (array).
    target
        Stream of destinations of results: the payload's :class:`~cdu.dma.segments.Segment`, or a
        :class:`~cdu.dma.records.TensorJob`, which may be read until its transfer.
    started, withdrawn
        High for a cycle: a job is given its START; the unit has refused it.
    o
        Stream of :class:`~cdu.dma.records.Ended`, with errors of START.
    """

    i: stream.Interface
    access: Any
    passages: Any
    target: stream.Interface
    started: Signal
    withdrawn: Signal
    o: stream.Interface

    def __init__(self, config: CduConfig, channel: Channel) -> None:
        self.config, self.channel = config, channel
        super().__init__(
            {
                "i": In(stream.Signature(Planned())),
                "access": Out(AccessPort),
                "passages": Out(stream.Signature(Passage())).array(2),
                "target": Out(stream.Signature(Segment() if channel is Channel.COMPRESS else TensorJob())),
                **dict.fromkeys(("started", "withdrawn"), Out(1)),
                "o": Out(stream.Signature(Ended())),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        job = self.i.payload
        kind = kinds(self.config, job["fetched"]["descriptor"]["mode"])
        refused = Signal(REGISTER_BITS)  # errors of its START
        accepted = Signal()
        # Packets that have not been let through yet, and a result that has no destination
        waits = [Signal(name=f"{name}_waits") for name in ("data", "scales", "result")]
        for passage, still in zip(self.passages, waits[:-1], strict=True):
            m.d.comb += [
                passage.valid.eq(still),
                passage.payload["drops"].eq(~accepted),
                passage.payload["wide"].eq(kind["wide"]),
            ]
            with m.If(passage.ready):
                m.d.sync += still.eq(0)
        leaves = self.o.valid & self.o.ready
        self._place(m, job, kind, waits[-1])
        self._tell(m, job, refused, accepted)
        m.d.comb += self.i.ready.eq(leaves)

        found = self.access.read_data & _REFUSED
        with m.FSM():
            with m.State("REST"):
                m.d.sync += [refused.eq(0), accepted.eq(0)]
                m.d.comb += self.started.eq(self.i.valid & runs(job))
                with m.If(self.i.valid):
                    m.next = "PASS"
                with m.If(self.started):
                    m.next = "START"
            with m.State("START"):
                m.d.comb += ask(self.access, self.channel, "CONTROL", register("CONTROL").pack(start=1))
                with m.If(self.access.done):
                    m.next = "CHECK"
            with m.State("CHECK"):
                m.d.comb += ask(self.access, self.channel, "ERRORS")
                m.d.comb += self.withdrawn.eq(self.access.done & found.any())
                with m.If(self.access.done):
                    m.d.sync += [refused.eq(found), accepted.eq(~found.any())]
                    m.d.sync += [waits[0].eq(1), waits[1].eq(kind["has_scales"]), waits[2].eq(~found.any())]
                    m.next = "PASS"
                    with m.If(found.any()):
                        m.next = "CLEAR"
            with m.State("CLEAR"):
                m.d.comb += ask(self.access, self.channel, "ERRORS", refused)
                with m.If(self.access.done):
                    m.next = "PASS"
            with m.State("PASS"):
                m.d.comb += self.o.valid.eq(~Cat(waits).any())
                with m.If(leaves):
                    m.next = "REST"
        return m

    def _place(self, m: Module, job: Any, kind: dict[str, Any], waits: Signal) -> None:
        """Keep the destination of a result until it has been taken; the next one ``waits`` meanwhile."""
        target: Any = Signal(self.target.payload.shape(), name="placed", reset_less=True)
        m.d.comb += self.target.payload.eq(target)
        with m.If(self.target.ready):
            m.d.sync += self.target.valid.eq(0)
        with m.If(waits & ~self.target.valid):
            m.d.sync += [self.target.valid.eq(1), waits.eq(0)]
            m.d.sync += tensor_job(target, job, kind) if self.channel is Channel.DECOMPRESS else payload_segment(target, job)

    def _tell(self, m: Module, job: Any, refused: Signal, accepted: Signal) -> None:
        """Make the outcome of the job so far."""
        ended: Any = self.o.payload
        descriptor = job["fetched"]["descriptor"]
        m.d.comb += [
            ended["address"].eq(descriptor["completion"]),
            *(ended[name].eq(job[name]) for name in ("nowhere", "errors")),
            ended["failed"].eq(job["fetched"]["failed"]),
            ended["job"].eq(job["fetched"]["number"]),
            ended["tag"].eq(descriptor["tag"]),
            ended["unit_errors"].eq(refused),
            ended["started"].eq(accepted),
        ]
