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
from cdu.dma.records import KINDS, Ended, Planned, TensorJob, kinds, payload_segment, runs, tensor_job
from cdu.dma.segments import Segment
from cdu.dma.unit_access import ask

#: Errors of START, after which nothing was queued.
_REFUSALS = ("bad_job", "bad_length", "queue_full")
_REFUSED = sum(register("ERRORS").field(name).mask for name in _REFUSALS)


class JobStarter(wiring.Component):
    """Give a job its START, and send its packets and the destination of its result on their way.

    The next job is started when this one has been passed on: one job has its START and waits for its turn in the unit while the
    one before it is in progress. Data that were read for a job that the unit refuses are dropped.

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
    passages
        Streams of :class:`~cdu.dma.packet_gate.Passage`, one for each packet of data and one for each of scales (array).
    target
        Stream of destinations of results: the payload's :class:`~cdu.dma.segments.Segment`, or a
        :class:`~cdu.dma.records.TensorJob`.
    started, withdrawn
        High for a cycle: a job had its START; the unit has refused it.
    o
        Stream of :class:`~cdu.dma.records.Ended`, with errors of START.
    working
        A job was taken and has not been passed on.
    """

    i: stream.Interface
    access: Any
    passages: Any
    target: stream.Interface
    started: Signal
    withdrawn: Signal
    o: stream.Interface
    working: Signal

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
                "working": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        job: Any = Signal(Planned(), reset_less=True)
        kind = {name: Signal(name=name, reset_less=True) for name in KINDS}
        refused = Signal(REGISTER_BITS)  # errors of its START
        started = Signal()
        # Streams to which the job is to be given
        given = (*self.passages, self.target)
        waits = [Signal(name=f"waits{number}") for number in range(len(given))]
        of_tensor = self.channel is Channel.DECOMPRESS
        m.d.comb += tensor_job(self.target.payload, job, kind) if of_tensor else payload_segment(self.target.payload, job)
        for target, still in zip(given, waits, strict=True):
            m.d.comb += target.valid.eq(still)
            with m.If(target.ready):
                m.d.sync += still.eq(0)
        for passage in self.passages:
            m.d.comb += [passage.payload["drops"].eq(~started), passage.payload["wide"].eq(kind["wide"])]
        self._tell(m, job, refused, started)

        taken = self.i.payload
        found = self.access.read_data & _REFUSED
        with m.FSM() as states:
            m.d.comb += self.working.eq(~states.ongoing("REST"))
            with m.State("REST"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [job.eq(taken), refused.eq(0), started.eq(0)]
                found_kinds = kinds(self.config, taken["fetched"]["descriptor"]["mode"])
                m.d.sync += [kind[name].eq(is_so) for name, is_so in found_kinds.items()]
                with m.If(self.i.valid):
                    m.next = "PASS"
                    with m.If(runs(taken)):
                        m.next = "START"
            with m.State("START"):
                m.d.comb += ask(self.access, self.channel, "CONTROL", register("CONTROL").pack(start=1))
                m.d.comb += self.started.eq(self.access.done)
                with m.If(self.access.done):
                    m.next = "CHECK"
            with m.State("CHECK"):
                m.d.comb += ask(self.access, self.channel, "ERRORS")
                m.d.comb += self.withdrawn.eq(self.access.done & found.any())
                with m.If(self.access.done):
                    m.d.sync += [refused.eq(found), started.eq(~found.any())]
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
                with m.If(self.o.valid & self.o.ready):
                    m.next = "REST"
        return m

    def _tell(self, m: Module, job: Any, refused: Signal, started: Signal) -> None:
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
            ended["started"].eq(started),
        ]
