"""The job queue of one direction."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from struct import iter_unpack, pack

from cdu_spec.affine import AffineSettings
from cdu_spec.bitstream import CRC_BYTES
from cdu_spec.channel_block import ERROR_FLAGS, JOB_ERRORS
from cdu_spec.coding import ShiftCoding
from cdu_spec.geometry import LANES
from cdu_spec.modes import Coder, Dtype, Mode
from cdu_spec.mx import MxSettings
from cdu_spec.ports import PORTS
from cdu_spec.register_types import BANKS, JOB_QUEUE, REGISTER_BITS, SHIFT_REGISTERS, Channel, ScaleSource
from cdu_spec.registers import address, pack_mx, pack_quantizer, pack_shift_registers, register
from cdu_tools.errors import UserError

from cdu_driver.device import Device
from cdu_driver.errors import JobFailedError, JobLostError, JobRefusedError, RecoveryError
from cdu_driver.job import OFFSET_BYTES, SCALE_BYTES, Job

#: Jobs under way at the same time: one in the data path, the others in the unit's queue.
DEPTH = JOB_QUEUE + 1
#: Errors of START after which no job was queued.
_REFUSALS = ("bad_job", "bad_length", "queue_full")
#: Errors that do not invalidate a job.
_HARMLESS = ("nonfinite",)
#: Reads of STATUS before recovery fails.
_PATIENCE = 10_000


@dataclass(frozen=True)
class Result:
    """The result of a job: the payload when compressing, the values when decompressing.

    ``nonfinite``: True if a value of this job was infinite or NaN; in units without records, a value of any job under way with
    it. ``payload_bytes``: bytes that the unit counted, without a CRC; None in units without records.
    """

    data: bytes | memoryview
    nonfinite: bool
    payload_bytes: int | None = None


@dataclass(frozen=True)
class Counters:
    """The counters of a channel, as docs/reference/registers.md describes them."""

    jobs_done: int
    cycles: int
    values: int
    bytes: int
    input_stall: int
    input_idle: int
    output_stall: int

    @property
    def values_per_cycle(self) -> float:
        """Values at the uncompressed port per busy cycle."""
        return self.values / self.cycles if self.cycles else 0.0


@dataclass
class _UnderWay:
    job: Job
    bank: int
    done: bool = False
    flags: tuple[str, ...] = ()
    payload_bytes: int | None = None


class JobQueue:
    """Submit jobs of one direction and collect their results in the same order; :meth:`run` does both.

    Parameters
    ----------
    device
        The unit.
    channel
        The direction.
    scales_by_registers
        Write scales to registers instead of sending them to the scale port.

    Up to 3 jobs are under way: the next ones are programmed while one runs, so that the unit goes from one to the other without
    a pause. A new shift table goes to the bank that no job under way uses. An error in the data of a job loses that job alone
    in units with ``completions``, in others all that are under way.
    """

    def __init__(self, device: Device, channel: Channel, *, scales_by_registers: bool = False) -> None:
        self.channel = channel
        self._device, self._ports = device, PORTS[channel]
        self._scale_source = ScaleSource.REGISTERS if scales_by_registers else ScaleSource.PORT
        self._value_bytes = 0
        self._modes: frozenset[Mode] = frozenset()
        self._coders: frozenset[Coder] = frozenset()
        self._payload_crc = False
        self._completions = 0
        self._jobs: deque[_UnderWay] = deque()
        self._tables: list[tuple[int, ...] | None] = [None] * BANKS
        self._written: dict[str, int] = {}
        self._jobs_done = 0

    async def open(
        self,
        dtype: Dtype,
        modes: Collection[Mode],
        coders: Collection[Coder],
        watchdog: int,
        *,
        payload_crc: bool,
        completions: int,
    ) -> None:
        """Make the channel idle and set it up; called by :meth:`cdu_driver.Driver.open`."""
        self._payload_crc, self._completions = payload_crc, completions
        self._value_bytes = dtype.bits // 8
        self._modes, self._coders = frozenset(modes), frozenset(coders)
        self._tables = [None] * BANKS
        self._written.clear()
        await self.recover()
        # Errors that a record reports need no interrupt before it.
        loud = [name for name, _ in ERROR_FLAGS if not (completions and name in JOB_ERRORS)]
        await self._write("ERROR_ENABLE", register("ERROR_ENABLE").pack(**dict.fromkeys(loud, 1)))
        await self._write("INTERRUPT_ENABLE", register("INTERRUPT_ENABLE").pack(job_done=1, error=1))
        await self._write("WATCHDOG", watchdog)

    @property
    def under_way(self) -> int:
        """Jobs that were submitted and not collected."""
        return len(self._jobs)

    async def run(self, jobs: Iterable[Job]) -> list[Result]:
        """Return results of jobs. Raises errors of :meth:`submit` and :meth:`collect`; JobFailedError once all have ended."""
        results = []
        for outcome in await self.outcomes(jobs):
            if isinstance(outcome, JobFailedError):
                raise outcome
            results.append(outcome)
        return results

    async def outcomes(self, jobs: Iterable[Job]) -> list[Result | JobFailedError]:
        """Return the outcomes of jobs, which are kept flowing: the result, or the error of this job alone.

        Raises the errors of :meth:`submit` and :meth:`collect` except JobFailedError.
        """
        outcomes: list[Result | JobFailedError] = []

        async def collect() -> None:
            try:
                outcomes.append(await self.collect())
            except JobFailedError as error:
                outcomes.append(error)

        for job in jobs:
            if self.under_way == DEPTH:
                await collect()
            await self.submit(job)
        while self.under_way:
            await collect()
        return outcomes

    async def submit(self, job: Job) -> None:
        """Program a job and send its data; waits while too many are under way.

        Raises JobRefusedError if the unit rejects the job, JobLostError if an earlier job has failed, and UserError if the
        data do not have the length that the job states, or if the job needs GMC or CRCs and the unit has none.
        """
        self._check_length(job)
        if job.crc and not self._payload_crc:
            raise UserError(
                "this unit writes and checks no CRC of payloads: use a job without, or build it with payload_crc = 1"
            )
        if job.needs_coding and Coder.GMC not in self._coders:
            raise UserError("this unit has neither GMC nor a reconstruction point: use coder zvc and point 0")
        while sum(not entry.done for entry in self._jobs) >= DEPTH or (bank := self._bank(job)) is None:
            await self._wait()
        if job.mode.has_dct and self._tables[bank] != job.shifts:
            values = pack_shift_registers(job.shifts)
            for index in range(SHIFT_REGISTERS):
                await self._device.write(address(f"SHIFTS{bank}", self.channel, index), values[index])
            self._tables[bank] = job.shifts
        await self._start(job, bank)
        self._jobs.append(_UnderWay(job, bank))
        await self._device.expect(self._ports.output, self._most_output_bytes(job))
        await self._device.send(self._ports.input, job.data)
        await self._give_scales(job)

    async def collect(self) -> Result:
        """Return the result of the oldest job; waits until it has ended.

        Raises JobFailedError if this job alone has failed, JobLostError if all are lost.
        """
        if not self._jobs:
            raise UserError("no job is under way: submit one first")
        while not self._jobs[0].done:
            await self._wait()
        data = await self._device.receive(self._ports.output)
        entry = self._jobs.popleft()
        if spoiled := _spoiling(entry.flags):
            raise JobFailedError(f"{entry.job} failed in the {self.channel.value} channel", spoiled)
        return Result(data, bool(entry.flags), entry.payload_bytes)

    async def recover(self) -> None:
        """Forget all jobs, whatever state the channel is in, and clear its errors and interrupts.

        Raises RecoveryError if the source of the input stops in the middle of a packet and does not end it, or if the sink of
        the output does not take the rest of a packet.
        """
        control = register("CONTROL")
        for port in (self._ports.input, self._ports.scales):
            await self._device.cancel(port)
        await self._write("CONTROL", control.pack(abort=1, flush=1))
        await self._device.cancel(self._ports.output)
        for _ in range(_PATIENCE):
            status = register("STATUS").unpack(await self._read("STATUS"))
            if not status["busy"] and not status["flushing"] and not status["draining"]:
                break
        else:
            if status["draining"]:
                raise RecoveryError(
                    f"the sink at port {self._ports.output} does not take what is left of a packet: let it go on, or reset the "
                    "unit"
                )
            raise RecoveryError(
                f"the {self.channel.value} channel waits for the rest of a packet: end it with TLAST at port "
                f"{self._ports.input} or {self._ports.scales}, or reset the unit"
            )
        self._jobs.clear()
        await self._write("INTERRUPT_STATUS", await self._read("INTERRUPT_STATUS"))
        await self._write("ERRORS", await self._read("ERRORS"))
        self._jobs_done = await self._read("JOBS_DONE")
        if self._completions:
            await self._write("COMPLETION_KEEP", 0)
            while (await self._completion())["waiting"]:
                pass
            await self._write("COMPLETION_KEEP", register("COMPLETION_KEEP").pack(keep=1))

    async def counters(self) -> Counters:
        """The counters of the channel."""
        wide = {}
        for name in ("CYCLES", "VALUES", "BYTES"):
            low = await self._read(f"{name}_LOW")
            wide[name.lower()] = low | await self._read(f"{name}_HIGH") << REGISTER_BITS
        narrow = {name.lower(): await self._read(name) for name in ("JOBS_DONE", "INPUT_STALL", "INPUT_IDLE", "OUTPUT_STALL")}
        return Counters(**wide, **narrow)

    async def clear_counters(self) -> None:
        """Set all counters to 0. Raises UserError while jobs are under way."""
        if self._jobs:
            raise UserError("counters cannot be cleared while jobs are under way: collect them first")
        await self._write("CONTROL", register("CONTROL").pack(clear_counters=1))
        self._jobs_done = 0

    async def _start(self, job: Job, bank: int) -> None:
        """Write the changed registers of a job, and start it."""
        values = {
            "MODE": register("MODE").pack(mode=job.mode, bank=bank, scales=self._scale_source),
            "BEATS": job.beats,
            "ROW_BEATS": job.row_beats,
            "CHANNEL_ROWS": job.channel_rows,
        }
        # A unit without affine modes has no such registers, and rejects the job.
        how = job.how
        if isinstance(how, AffineSettings) and any(mode.is_affine for mode in self._modes):
            values["QUANTIZER"] = pack_quantizer(how)
            if self.channel is Channel.COMPRESS:
                values["SEED"] = how.seed
        if isinstance(how, ShiftCoding) and Coder.GMC in self._coders:
            values["CODING"] = register("CODING").pack(coder=how.coder, point=how.point)
        if isinstance(how, MxSettings) and Mode.MX in self._modes:
            values["MX_CODING"] = pack_mx(how)
        if self._payload_crc:
            values["PAYLOAD_CRC"] = register("PAYLOAD_CRC").pack(present=job.crc)
        if self.channel is Channel.DECOMPRESS:
            length = _payload_bytes(job)
            values |= {
                "PAYLOAD_BYTES_LOW": length & ((1 << REGISTER_BITS) - 1),
                "PAYLOAD_BYTES_HIGH": length >> REGISTER_BITS,
            }
        for name, value in values.items():
            if self._written.get(name) != value:
                await self._write(name, value)
                self._written[name] = value
        while not register("STATUS").field("queue_space").get(await self._read("STATUS")):
            await self._look()
        await self._write("CONTROL", register("CONTROL").pack(start=1))
        flags = _flags("ERRORS", await self._read("ERRORS"))
        refusals = [flag for flag in flags if flag in _REFUSALS]
        if refusals:
            await self._write("ERRORS", register("ERRORS").pack(**dict.fromkeys(refusals, 1)))
            raise JobRefusedError(f"{job} was refused", refusals)

    async def _give_scales(self, job: Job) -> None:
        if not job.mode.has_scales:
            return
        if self._scale_source is ScaleSource.PORT:
            await self._device.send(self._ports.scales, self._scale_packet(job))
            return
        scales = [scale for (scale,) in iter_unpack("<I", job.scales)]
        offsets = [offset for (offset,) in iter_unpack("<H", job.offsets)] or [None] * len(scales)
        space = 0
        for number, (scale, offset) in enumerate(zip(scales, offsets, strict=True), 1):
            while not space:
                space = register("STATUS").field("scale_space").get(await self._read("STATUS"))
                if not space:
                    await self._look()
            if offset is not None:
                await self._write("SCALE_OFFSET", offset)
            await self._write("SCALE_LAST" if number == len(scales) else "SCALE", scale)
            space -= 1

    def _scale_packet(self, job: Job) -> bytes | memoryview:
        """Return the data for the scale port: units with mode blpa take an offset beside every scale."""
        if not any(mode.has_offsets for mode in self._modes):
            return job.scales
        count = memoryview(job.scales).nbytes // SCALE_BYTES
        offsets = bytes(job.offsets) or bytes(count * OFFSET_BYTES)
        pairs = zip(iter_unpack("<I", job.scales), iter_unpack("<H", offsets), strict=True)
        return b"".join(pack("<IHxx", *scale, *offset) for scale, offset in pairs)

    async def _wait(self) -> None:
        """Wait for an interrupt, and handle it."""
        await self._device.wait_interrupt()
        await self._look()

    async def _look(self) -> None:
        """Record jobs that have ended. Raises JobLostError, after recovery, for an error that invalidates jobs."""
        reasons = await self._read("INTERRUPT_STATUS")
        if reasons:
            await self._write("INTERRUPT_STATUS", reasons)
        waiting = [entry for entry in self._jobs if not entry.done]
        # Jobs come before errors: the errors of a job are complete when it has ended.
        if self._completions:
            ended = waiting[: (await self._completion())["waiting"]]
        else:
            jobs_done = await self._read("JOBS_DONE")
            ended = waiting[: (jobs_done - self._jobs_done) % (1 << REGISTER_BITS)]
            self._jobs_done = jobs_done
        errors = await self._read("ERRORS")
        if errors:
            await self._write("ERRORS", errors)
        flags = [flag for flag in _flags("ERRORS", errors) if not (self._completions and flag in JOB_ERRORS)]
        if spoiled := _spoiling(flags):
            jobs = ", ".join(str(entry.job) for entry in self._jobs)
            await self.recover()
            raise JobLostError(f"lost in the {self.channel.value} channel: {jobs}", spoiled)
        for entry in waiting:
            entry.flags += tuple(flags)
        for entry in ended:
            if self._completions:
                await self._take_record(entry)
            entry.done = True

    async def _take_record(self, entry: _UnderWay) -> None:
        """Record the outcome of a job from the oldest record."""
        entry.payload_bytes = await self._read("COMPLETION_BYTES")
        entry.flags = tuple(_flags("COMPLETION_ERRORS", await self._read("COMPLETION_ERRORS")))
        await self._write("COMPLETION_NEXT", register("COMPLETION_NEXT").pack(take=1))

    async def _completion(self) -> dict[str, int]:
        return register("COMPLETION").unpack(await self._read("COMPLETION"))

    def _bank(self, job: Job) -> int | None:
        """Return the bank for a job: one that has its table, or one that no job under way uses; None if there is none."""
        if not job.mode.has_dct:
            return 0
        if job.shifts in self._tables:
            return self._tables.index(job.shifts)
        used = {entry.bank for entry in self._jobs if entry.job.mode.has_dct and not entry.done}
        return next((bank for bank in range(BANKS) if bank not in used), None)

    def _check_length(self, job: Job) -> None:
        length = memoryview(job.data).nbytes
        if self.channel is Channel.COMPRESS and length != job.beats * LANES * self._value_bytes:
            raise UserError(
                f"{length} bytes are no {job.beats} beats of 8 values: give {job.beats * LANES * self._value_bytes} bytes"
            )
        if self.channel is Channel.DECOMPRESS and _payload_bytes(job) < 1:
            raise UserError("an empty payload cannot be decompressed: give its bytes")

    def _most_output_bytes(self, job: Job) -> int:
        values = job.beats * LANES * self._value_bytes
        if self.channel is Channel.DECOMPRESS:
            return values
        return (values if job.mode is Mode.BYPASS else job.most_payload_bytes) + (CRC_BYTES if job.crc else 0)

    async def _read(self, name: str) -> int:
        return await self._device.read(address(name, self.channel))

    async def _write(self, name: str, value: int) -> None:
        await self._device.write(address(name, self.channel), value)


def _payload_bytes(job: Job) -> int:
    """Return the bytes of a payload to be decompressed, without its CRC."""
    return memoryview(job.data).nbytes - (CRC_BYTES if job.crc else 0)


def _flags(name: str, errors: int) -> list[str]:
    return [flag for flag, bit in register(name).unpack(errors).items() if bit]


def _spoiling(flags: Iterable[str]) -> list[str]:
    return [flag for flag in flags if flag not in _HARMLESS]
