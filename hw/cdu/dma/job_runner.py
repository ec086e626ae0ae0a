"""A job from its START to its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.registers import REGISTER_BITS, REGISTER_BYTES, Channel, address, register

from cdu.bus.axi_lite import AccessPort
from cdu.control.register_file import layout
from cdu.dma.memory_writer import WriteResult
from cdu.dma.records import KINDS, Outcome, Planned, ScalesJob, TensorJob, kinds
from cdu.dma.segments import Segment

#: Errors of START: nothing was queued.
_REFUSALS = ("bad_job", "bad_length", "queue_full")
#: Cycles from the last byte of an input packet until every error that it may cause stands in ERRORS.
_SETTLE_CYCLES = 16


class JobRunner(wiring.Component):
    """Starts a job, sets the walkers off, waits until all is in memory, asks the unit what went wrong.

    One job at a time, so that every error belongs to one.

    Parameters
    ----------
    config
        Modes of the unit.
    channel
        The direction.

    Ports
    -----
    i
        Stream of :class:`~cdu.dma.records.Planned`: jobs whose registers are written, or that cannot be run.
    access
        :data:`~cdu.bus.axi_lite.AccessPort`.
    tensor, scales, payload
        Streams of what is to be moved: a :class:`~cdu.dma.records.TensorJob`, a :class:`~cdu.dma.records.ScalesJob`, the
        segment of the payload.
    read, scales_read, written
        Streams of what became of it: whether a read of the data or of the scales failed, and the result of the writer.
    o
        Stream of :class:`~cdu.dma.records.Outcome`.
    working
        A job is under way.
    """

    i: stream.Interface
    access: Any
    tensor: stream.Interface
    scales: stream.Interface
    payload: stream.Interface
    read: stream.Interface
    scales_read: stream.Interface
    written: stream.Interface
    o: stream.Interface
    working: Signal

    def __init__(self, config: CduConfig, channel: Channel) -> None:
        self.channel = channel
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(Planned())),
                "access": Out(AccessPort),
                "tensor": Out(stream.Signature(TensorJob())),
                "scales": Out(stream.Signature(ScalesJob())),
                "payload": Out(stream.Signature(Segment())),
                "read": In(stream.Signature(1)),
                "scales_read": In(stream.Signature(1)),
                "written": In(stream.Signature(WriteResult())),
                "o": Out(stream.Signature(Outcome())),
                "working": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        job: Any = Signal(Planned(), reset_less=True)
        descriptor = job["fetched"]["descriptor"]
        kind = {name: Signal(name=name) for name in KINDS}
        self._describe(m, job, kind)

        record: Any = self.o.payload["record"]
        errors, unit_errors, cycles = job["errors"], Signal(REGISTER_BITS), Signal(REGISTER_BITS)
        size = Signal(REGISTER_BITS)
        m.d.comb += [
            self.o.payload["address"].eq(descriptor["completion"]),
            self.o.payload["nowhere"].eq(job["nowhere"]),
            self.o.payload["failed"].eq(job["fetched"]["failed"]),
            record["job"].eq(job["fetched"]["number"]),
            record["tag"].eq(descriptor["tag"]),
            record["errors"].eq(errors),
            record["unit_errors"].eq(unit_errors),
            record["cycles"].eq(cycles),
            record["bytes"].eq(size),
            record["done"].eq(1),
        ]

        # What has still to move
        moving = {name: Signal(name=f"{name}_moves") for name in ("read", "scales_read", "written")}
        given = {name: Signal(name=f"{name}_waits") for name in ("tensor", "scales", "payload")}
        for name, waits in given.items():
            walker = getattr(self, name)
            m.d.comb += walker.valid.eq(waits)
            with m.If(walker.ready):
                m.d.sync += waits.eq(0)
        for name, moves in moving.items():
            result = getattr(self, name)
            m.d.comb += result.ready.eq(moves)
            with m.If(result.valid):
                m.d.sync += moves.eq(0)
        for name in ("read", "scales_read"):
            with m.If(moving[name] & getattr(self, name).valid & getattr(self, name).payload):
                m.d.sync += errors["read"].eq(1)
        with m.If(moving["written"] & self.written.valid):
            result = self.written.payload
            m.d.sync += [
                size.eq(result["bytes"]),
                errors["write"].eq(result["failed"]),
                errors["overflow"].eq(result["surplus"]),
            ]

        found: Any = Signal(layout(register("ERRORS")))
        m.d.comb += found.as_value().eq(self.access.read_data)
        refused = Cat(found[name] for name in _REFUSALS).any()
        wait = Signal(range(_SETTLE_CYCLES))
        with m.FSM() as states:
            m.d.comb += self.working.eq(~states.ongoing("REST"))
            with m.State("REST"):
                m.d.comb += self.i.ready.eq(1)
                mode = self.i.payload["fetched"]["descriptor"]["mode"]
                m.d.sync += [kind[name].eq(is_so) for name, is_so in kinds(self.config, mode).items()]
                m.d.sync += [job.eq(self.i.payload), unit_errors.eq(0), cycles.eq(0), size.eq(0), wait.eq(_SETTLE_CYCLES - 1)]
                with m.If(self.i.valid):
                    planned = self.i.payload
                    m.next = "START"
                    with m.If(planned["fetched"]["failed"] | planned["errors"].as_value().any()):
                        m.next = "RECORD"
            with m.State("START"):
                self._access(m, "CONTROL", register("CONTROL").pack(start=1))
                m.d.sync += cycles.eq(cycles + 1)
                with m.If(self.access.done):
                    m.next = "CHECK"
            with m.State("CHECK"):
                self._access(m, "ERRORS")
                m.d.sync += cycles.eq(cycles + 1)
                with m.If(self.access.done):
                    m.d.sync += unit_errors.eq(self.access.read_data)
                    with m.If(refused):
                        m.next = "CLEAR"
                    with m.Else():
                        m.d.sync += [*(waits.eq(1) for waits in given.values()), *(moves.eq(1) for moves in moving.values())]
                        with m.If(~kind["has_scales"]):
                            m.d.sync += [given["scales"].eq(0), moving["scales_read"].eq(0)]
                        m.next = "MOVE"
            with m.State("MOVE"):
                with m.If(Cat(moving.values()).any()):
                    m.d.sync += cycles.eq(cycles + 1)
                with m.Else():
                    m.d.sync += wait.eq(wait - 1)
                    with m.If(wait == 0):
                        m.next = "LOOK"
            with m.State("LOOK"):
                self._access(m, "ERRORS")
                with m.If(self.access.done):
                    m.d.sync += unit_errors.eq(unit_errors | self.access.read_data)
                    m.next = "CLEAR"
            with m.State("CLEAR"):
                with m.If(unit_errors == 0):
                    m.next = "RECORD"
                with m.Else():
                    self._access(m, "ERRORS", unit_errors)
                    with m.If(self.access.done):
                        m.d.sync += errors["unit"].eq(1)
                        m.next = "RECORD"
            with m.State("RECORD"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "REST"
        return m

    def _describe(self, m: Module, job: Any, kind: Mapping[str, Signal]) -> None:
        """What the walkers are told."""
        descriptor, counts = job["fetched"]["descriptor"], job["counts"]
        tensor, scales, payload = self.tensor.payload, self.scales.payload, self.payload.payload
        m.d.comb += [
            *(tensor[name].eq(descriptor[name]) for name in ("tensor", "stride_n", "stride_c", "stride_h", "c", "h", "w")),
            *(tensor[name].eq(kind[name]) for name in ("in_tiles", "flat", "repeats")),
            tensor["counts"].eq(counts),
            scales["address"].eq(descriptor["scales"]),
            scales["channels"].eq(descriptor["c"]),
            *(scales[name].eq(counts[name]) for name in ("groups", "extra")),
            *(scales[name].eq(kind[name]) for name in ("wide", "repeats")),
            payload["address"].eq(descriptor["payload"]),
            payload["bytes"].eq(descriptor["payload_bytes"]),
            payload["last"].eq(1),
        ]

    def _access(self, m: Module, name: str, value: Any = None) -> None:
        """A read of a register, or a write."""
        m.d.comb += [
            self.access.active.eq(1),
            self.access.word.eq(address(name, self.channel) // REGISTER_BYTES),
            self.access.write.eq(int(value is not None)),
            self.access.whole.eq(1),
            self.access.data.eq(0 if value is None else value),
        ]
