"""Control of one direction of a unit: jobs, scales, shift tables, errors, counters."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES, SHIFT_BITS
from cdu_spec.modes import Mode
from cdu_spec.register_types import BANKS, COUNT_BITS, JOB_QUEUE, MAX_JOBS, REGISTER_BITS, SCALE_QUEUE, Channel
from cdu_spec.registers import channel_registers, register

from cdu.control.counter import counter, event_counter, registered, wide_counter
from cdu.control.error_places import Findings
from cdu.control.job_check import LENGTH_BITS, JobCheck
from cdu.control.job_ledger import JobLedger
from cdu.control.payload_length import ExpectedLength
from cdu.control.register_file import BlockPort, RegisterFile, layout
from cdu.parts.head_fifo import HeadFifo
from cdu.parts.stream_fifo import StreamFifo
from cdu.values.scale_join import ScaleOrder
from cdu.words import Job, JobEvents, PortEvents, Scale, ShiftBanks, is_one_of

_WIDE_COUNTERS = ("CYCLES", "VALUES", "BYTES")


class ChannelPorts(wiring.Signature):
    """Signals between the control of a direction and its data path, seen from the control.

    ``job``
        Stream of :class:`~cdu.words.Job`; the next job waits here while the one before is processed.
    ``shifts``
        Both shift tables; a table changes only while no job uses it.
    ``scales``
        Stream of :class:`~cdu.words.Scale`: values written to SCALE and SCALE_LAST.
    ``starts``
        High for a cycle when a job is started. In that cycle ``scaled`` says whether the job has scales, ``scale_order``
        (:class:`~cdu.values.scale_join.ScaleOrder`) describes them, and ``expected_length``
        (:class:`~cdu.control.payload_length.ExpectedLength`, only when decompressing) describes its payload; ``has_crc``, in
        units with ``payload_crc``, says whether the payload has a CRC.
    ``room``
        All receivers of ``starts`` have room for one more job; no job is started otherwise.
    ``abort``
        High for a cycle: forget all jobs. ``job`` and ``scales`` lose their valid without a transfer.
    ``flush``
        High together with ``abort``: throw away the rest of packets that have begun, up to TLAST.
    ``flushing``
        A flush is in progress.
    ``job_done``
        High for a cycle when the last word of the oldest job has left.
    ``draining``
        Words that an abort left at the output have not been taken yet.
    ``events``, ``port_events``
        Errors, each high for a cycle.
    ``input_valid``, ``input_ready``, ``output_valid``, ``output_ready``
        Handshakes of the ports of the unit.
    ``values``, ``packed``
        Number of values (bytes) transferred at the uncompressed (packed) port in this cycle.
    ``findings``
        :class:`~cdu.control.error_places.Findings`; only in units with a ledger.
    ``progress``
        The path is active elsewhere, or the channel waits for its turn: the watchdog does not count this cycle.
    """

    def __init__(self, config: CduConfig, channel: Channel) -> None:
        expected: dict[str, Any] = {"expected_length": Out(ExpectedLength())} if channel is Channel.DECOMPRESS else {}
        if config.payload_crc:
            expected["has_crc"] = Out(1)
        if config.ledger_jobs:
            expected["findings"] = In(Findings(config, channel))
        super().__init__(
            {
                "job": Out(stream.Signature(Job())),
                "starts": Out(1),
                "scaled": Out(1),
                "scale_order": Out(ScaleOrder()),
                **expected,
                "room": In(1),
                "shifts": Out(ShiftBanks),
                "scales": Out(stream.Signature(Scale())),
                "abort": Out(1),
                "flush": Out(1),
                "flushing": In(1),
                "draining": In(1),
                "job_done": In(1),
                "events": In(JobEvents()),
                "port_events": In(PortEvents()),
                "input_valid": In(1),
                "input_ready": In(1),
                "output_valid": In(1),
                "output_ready": In(1),
                "values": In(range(LANES * config.port_beats + 1)),
                "packed": In(range(config.packed_bytes + 1)),
                "progress": In(1),
            }
        )


class ChannelControl(wiring.Component):
    """Registers of one direction, and the jobs that they start.

    The registers are described in docs/reference/registers.md.

    Parameters
    ----------
    config
        All parameters that a job depends on.
    channel
        The direction.

    Ports
    -----
    block
        :data:`~cdu.control.register_file.BlockPort`, seen from the registers.
    hold
        A START is being checked. Rises in the cycle after the write; no access may come until it is low.
    unit
        :class:`ChannelPorts`.
    interrupt
        High while an enabled interrupt reason is set.
    works
        A job is queued or in progress, or an abort is not over.
    """

    block: Any
    hold: Signal
    unit: Any
    interrupt: Signal
    works: Signal

    def __init__(self, config: CduConfig, channel: Channel) -> None:
        self.config, self.channel = config, channel
        super().__init__(
            {
                "block": In(BlockPort),
                "hold": Out(1),
                "unit": Out(ChannelPorts(config, channel)),
                "interrupt": Out(1),
                "works": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit = self.unit
        registers: Any = RegisterFile(
            channel_registers(self.channel, self.config),
            outside=[f"SHIFTS{bank}" for bank in range(BANKS)],
            watched=[f"{name}_LOW" for name in _WIDE_COUNTERS],
        )
        m.submodules.registers = registers
        connect(m, flipped(self.block), registers.block)
        command = Signal.like(registers.control)
        m.d.comb += command.eq(Mux(registers.control_write, Value.cast(registers.control), 0))
        errors, status = registers.errors_set, registers.status
        for events in (unit.events, unit.port_events):
            m.d.comb += [errors[name].eq(events[name]) for name, _ in events.shape()]
        m.d.comb += [status.flushing.eq(unit.flushing), status.draining.eq(unit.draining)]

        start, job = self._checked_job(m, registers, command)
        timeout = Signal()
        m.d.sync += [unit.abort.eq(command.abort | timeout), unit.flush.eq(command.abort & command.flush)]
        busy, ended = self._jobs(m, registers, start, job)
        m.d.comb += self.works.eq(busy | unit.flushing | unit.draining)
        m.d.comb += [errors.aborted.eq(command.abort & (busy | command.start)), errors.timeout.eq(timeout)]
        scale_taken = self._scales(m, registers)
        self._shifts(m, registers, start, job, ended)
        self._watchdog(m, registers, busy, timeout, scale_taken)
        self._counters(m, registers, command, busy, ended)

        enabled = Value.cast(registers.errors_set) & Value.cast(registers.error_enable)
        m.d.comb += [
            registers.interrupt_status_set.job_done.eq(ended),
            registers.interrupt_status_set.error.eq(enabled.any()),
        ]
        m.d.sync += self.interrupt.eq((Value.cast(registers.interrupt_status) & Value.cast(registers.interrupt_enable)).any())
        return m

    def _checked_job(self, m: Module, registers: Any, command: Any) -> tuple[Signal, Any]:
        """Return the job in the registers after its check, and whether it is queued in this cycle."""
        job: Any = Signal(Job(), name="job_written")
        counts = {name: getattr(registers, name).value for name in ("beats", "row_beats", "channel_rows")}
        m.d.comb += [
            Value.cast(job.mode).eq(registers.mode.mode),
            job.bank.eq(registers.mode.bank),
            *(job[name].eq(count[:COUNT_BITS]) for name, count in counts.items()),
        ]
        if self.config.has_affine:
            written = registers.quantizer
            m.d.comb += [
                job.how.affine.bits_log2.eq(written.bits_log2),
                job.how.affine.step_log2.eq(written.step_log2),
                job.how.affine.stochastic.eq(written.stochastic),
                job.how.affine.block_range.eq(written.range),
                job.how.affine.statistics.eq(written.statistics),
            ]
            if self.channel is Channel.COMPRESS:
                m.d.comb += job.seed.eq(registers.seed.value)
        if self.config.has_gmc:
            with m.If(job.mode == Mode.JPEG_ACT):
                coded = job.how.shifts
                m.d.comb += [job.how.eq(0), Value.cast(coded.coder).eq(registers.coding.coder)]
                if self.channel is Channel.DECOMPRESS:
                    m.d.comb += coded.point.eq(registers.coding.point)
        if self.config.has_mx:
            with m.If(job.mode == Mode.MX):
                scaled = job.how.mx
                m.d.comb += [
                    job.how.eq(0),
                    scaled.format.eq(registers.mx_coding.format),
                    scaled.rceil.eq(registers.mx_coding.rule),
                ]
        m.submodules.check = check = JobCheck(self.config, self.channel)
        m.d.comb += [
            check.begin.eq(command.start & ~command.abort),
            check.mode.eq(job.mode),
            check.beats.eq(job.beats),
            check.row_beats.eq(job.row_beats),
            check.channel_rows.eq(job.channel_rows),
            check.beyond.eq(Cat(*(count[COUNT_BITS:] for count in counts.values())).any()),
            check.how.eq(job.how),
            check.scales.eq(registers.mode.scales),
            self.hold.eq(check.running),
        ]
        start = Signal()
        full = registers.status.queue_space == 0
        modes = self.config.built_modes
        order = self.unit.scale_order
        m.d.comb += [
            self.unit.starts.eq(start),
            self.unit.scaled.eq(is_one_of(job.mode, [mode for mode in modes if mode.has_scales])),
            Value.cast(order.source).eq(registers.mode.scales),
            order.affine.eq(is_one_of(job.mode, [mode for mode in modes if mode.is_affine])),
        ]
        if self.config.payload_crc:
            m.d.comb += self.unit.has_crc.eq(registers.payload_crc.present)
        if self.channel is Channel.DECOMPRESS:
            payload_bytes = Signal(LENGTH_BITS)
            expected = self.unit.expected_length
            m.d.comb += [
                payload_bytes.eq(Cat(registers.payload_bytes_low.value, registers.payload_bytes_high.value)),
                check.payload_bytes.eq(payload_bytes),
                expected.length.eq(payload_bytes[:REGISTER_BITS]),
                expected.known.eq(payload_bytes.any()),
            ]
        m.d.comb += [
            registers.errors_set.bad_job.eq(check.done & check.bad_job),
            registers.errors_set.bad_length.eq(check.done & ~check.bad_job & check.bad_length),
            registers.errors_set.queue_full.eq(check.done & full),
            start.eq(check.done & ~check.bad_job & ~check.bad_length & ~full),
        ]
        return start, job

    def _jobs(self, m: Module, registers: Any, start: Signal, job: Any) -> tuple[Signal, Signal]:
        """Queue jobs; return whether any is in progress, and whether the oldest one ends in this cycle."""
        unit, status = self.unit, registers.status
        m.submodules.jobs = jobs = ResetInserter(unit.abort)(HeadFifo(Job(), JOB_QUEUE))
        m.d.comb += [jobs.i.payload.eq(job), jobs.i.valid.eq(start)]
        connect(m, jobs.o, flipped(unit.job))
        waiting = Signal(range(JOB_QUEUE + 1))
        under_way = Signal(range(MAX_JOBS + 1))
        busy = Signal()
        ended = Signal()
        ends, room = unit.job_done & busy & ~unit.abort, unit.room & (under_way != MAX_JOBS)
        if self.config.ledger_jobs:
            ledger = self._ledger(m, registers, start, job, ends)
            ends, room = ledger.ended, room & ledger.room
        m.d.comb += [
            busy.eq(under_way != 0),
            ended.eq(ends),
            status.busy.eq(busy),
            status.jobs.eq(under_way),
            status.queue_space.eq(Mux(room, JOB_QUEUE - waiting, 0)),
        ]
        with m.If(unit.abort):
            m.d.sync += [waiting.eq(0), under_way.eq(0)]
        with m.Else():
            m.d.sync += [
                waiting.eq(waiting + start - (unit.job.valid & unit.job.ready)),
                under_way.eq(under_way + start - ended),
            ]
        return busy, ended

    def _ledger(self, m: Module, registers: Any, start: Signal, job: Any, left: Value) -> JobLedger:
        """Make the ledger that records what becomes of each job, and connect it to the registers."""
        unit = self.unit
        m.submodules.ledger = ledger = JobLedger(self.config, self.channel)
        m.d.comb += [
            ledger.start.eq(start),
            ledger.mode.eq(job.mode),
            ledger.findings.eq(unit.findings),
            ledger.moved.eq(unit.packed),
            ledger.left.eq(left),
            ledger.abort.eq(unit.abort),
            ledger.keeps.eq(registers.completion_keep.keep),
            ledger.take.eq(registers.completion_next_write & registers.completion_next.take),
            registers.completion.job.eq(ledger.job),
            registers.completion.waiting.eq(ledger.waiting),
            registers.completion_bytes.value.eq(ledger.payload_bytes),
            *(registers.completion_errors[name].eq(ledger.errors[name]) for name in ledger.flags),
        ]
        return ledger

    def _scales(self, m: Module, registers: Any) -> Value:
        """Queue scales; return whether one leaves the queue in this cycle."""
        unit = self.unit
        m.submodules.scales = scales = ResetInserter(unit.abort)(StreamFifo(Scale(), SCALE_QUEUE))
        connect(m, scales.o, flipped(unit.scales))
        space = Signal(range(SCALE_QUEUE + 1), init=SCALE_QUEUE)
        written = registers.scale_write | registers.scale_last_write
        taken: Value = unit.scales.valid & unit.scales.ready
        m.d.comb += [
            scales.i.valid.eq(written & (space != 0)),
            scales.i.payload["value"].eq(registers.scale.value),
            scales.i.payload["last"].eq(registers.scale_last_write),
            scales.i.payload["offset"].eq(registers.scale_offset.offset if self.config.has_offsets else 0),
            registers.errors_set.scale_overflow.eq(written & (space == 0)),
            registers.status.scale_space.eq(space),
        ]
        with m.If(unit.abort):
            m.d.sync += space.eq(SCALE_QUEUE)
        with m.Else():
            m.d.sync += space.eq(space - scales.i.valid + taken)
        return taken

    def _shifts(self, m: Module, registers: Any, start: Signal, job: Any, ended: Signal) -> None:
        """Connect the shift tables; each is locked while a job that uses it is in progress."""
        if not self.config.has_dct:
            return
        refused = Signal(BANKS)
        m.d.comb += registers.errors_set.busy_write.eq(refused.any())
        for bank in range(BANKS):
            # Jobs end in order: a table is in use until as many jobs have ended as there were when its last user was started
            users = Signal(range(MAX_JOBS + 1), name=f"users{bank}")
            in_use = users != 0
            with m.If(self.unit.abort):
                m.d.sync += users.eq(0)
            with m.Elif(start & (job.mode == Mode.JPEG_ACT) & (job.bank == bank)):
                m.d.sync += users.eq(registers.status.jobs + 1 - ended)
            with m.Elif(ended & in_use):
                m.d.sync += users.eq(users - 1)
            m.d.comb += registers.status.bank_busy[bank].eq(in_use)

            entry = register(f"SHIFTS{bank}")
            name = entry.name.lower()
            read, writes = getattr(registers, name), getattr(registers, f"{name}_write")
            written: Any = data.View(layout(entry), self.block.data)
            m.d.comb += refused[bank].eq(writes.any() & in_use)
            for index, write in enumerate(writes):
                for place, part in enumerate(entry.fields):
                    shift = Signal(SHIFT_BITS, name=f"{name}_{index}_{part.name}")
                    m.d.comb += self.unit.shifts[bank][len(entry.fields) * index + place].eq(shift)
                    m.d.comb += read[index][part.name].eq(shift)
                    with m.If(write & ~in_use):
                        m.d.sync += shift.eq(written[part.name])

    def _watchdog(self, m: Module, registers: Any, busy: Signal, timeout: Signal, scale_taken: Value) -> None:
        """End jobs that make no progress."""
        unit, limit = self.unit, registers.watchdog.value
        moves = Signal()
        expired = Signal()
        still = Signal(REGISTER_BITS)
        m.d.sync += moves.eq(
            (unit.input_valid & unit.input_ready) | (unit.output_valid & unit.output_ready) | scale_taken | unit.progress
        )
        with m.If(~busy | moves | unit.abort):
            m.d.sync += [still.eq(0), expired.eq(0)]
        with m.Elif(limit != 0):
            m.d.sync += [still.eq(still + 1), expired.eq(still >= limit)]
        m.d.comb += timeout.eq(expired & busy & ~unit.abort)

    def _counters(self, m: Module, registers: Any, command: Any, busy: Signal, ended: Signal) -> None:
        clear = command.clear_counters
        if self.config.counter_bits:
            self._count_movement(m, registers, busy, clear)
            self._count_waiting(m, registers, busy, clear)
        jobs = counter(m, "jobs_done", registered(m, ended, "has_ended"), clear)
        m.d.comb += registers.jobs_done.value.eq(jobs)

    def _count_movement(self, m: Module, registers: Any, busy: Signal, clear: Value) -> None:
        """Count cycles, values and bytes, in one register each or in two."""
        increments = {
            "cycles": registered(m, busy, "cycle"),
            "values": registered(m, self.unit.values, "values_moved"),
            "bytes": registered(m, self.unit.packed, "bytes_moved"),
        }
        kept = Signal(REGISTER_BITS)
        for name, increment in increments.items():
            if self.config.counter_bits == REGISTER_BITS:
                low = counter(m, name, increment, clear)
            else:
                low, high = wide_counter(m, name, increment, clear)
                m.d.comb += getattr(registers, f"{name}_high").value.eq(kept)
                with m.If(registered(m, getattr(registers, f"{name}_low_read"), f"{name}_was_read")):
                    m.d.sync += kept.eq(high)
            m.d.comb += getattr(registers, f"{name}_low").value.eq(low)

    def _count_waiting(self, m: Module, registers: Any, busy: Signal, clear: Value) -> None:
        """Count busy cycles in which only one of a port's valid and ready was high."""
        unit = self.unit
        events = {
            "input_stall": unit.input_valid & ~unit.input_ready,
            "input_idle": unit.input_ready & ~unit.input_valid,
            "output_stall": unit.output_valid & ~unit.output_ready,
        }
        for name, event in events.items():
            count = event_counter(m, name, registered(m, busy & event, f"{name}_seen"), clear)
            m.d.comb += getattr(registers, name).value.eq(count)
