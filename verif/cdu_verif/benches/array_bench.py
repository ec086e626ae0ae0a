"""Bench of a whole unit in a simulation: cocotbext-axi at every port, registers by name, jobs with golden results."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import astuple
from typing import Any, TypeVar

import cocotb
from actcodec.backends.job import Job
from cdu_driver import Device, Driver, JobQueue
from cdu_driver import Job as DriverJob
from cdu_spec import channel_block, register_types, registers
from cdu_spec.affine import AffineSettings
from cdu_spec.coding import ShiftCoding
from cdu_spec.mx import MxSettings
from cdu_spec.ports import PORTS, REGISTER_PORT
from cdu_spec.register_types import Channel, Register, ScaleSource
from cocotb.triggers import ClockCycles, SimTimeoutError, with_timeout

from cdu_verif.content.payloads import float_beats, float_bytes, same_bits
from cdu_verif.content.tensors import Exchange
from cdu_verif.simulation import clocks, cover_points
from cdu_verif.simulation.axi_device import AxiDevice
from cdu_verif.simulation.axi_ports import Registers, StreamIn, StreamOut, Watches, random_patterns
from cdu_verif.simulation.bench import CLOCK_NS, Bench
from cdu_verif.simulation.driver_jobs import driver_job, scale_bytes, scales_with_offsets
from cdu_verif.simulation.patterns import PATTERNS

_Result = TypeVar("_Result")
#: Cycles of the unit in which the slowest clock of a port has four.
_SLOWEST = 12


class ArrayBench(Bench):
    """One simulated array; parameters as in :class:`~cdu_verif.simulation.bench.Bench`.

    A test uses the ports through :attr:`i`, :attr:`scales`, :attr:`o` and :attr:`bus`. :attr:`watches` samples them in every
    cycle and raises if an output breaks a rule of its stream.
    """

    def __init__(self, dut: Any, test: str) -> None:
        super().__init__(dut, test)
        self.i: dict[Channel, StreamIn] = {}
        self.scales: dict[Channel, StreamIn] = {}
        self.o: dict[Channel, StreamOut] = {}
        for channel, ports in PORTS.items():
            self.i[channel], self.scales[channel] = StreamIn(dut, ports.input), StreamIn(dut, ports.scales)
            self.o[channel] = StreamOut(dut, ports.output)
        self.bus = Registers(dut, REGISTER_PORT)
        inputs = {end.prefix: end for ends in (self.i, self.scales) for end in ends.values()}
        self.device = AxiDevice(dut, self.bus, inputs, {end.prefix: end for end in self.o.values()})
        streams = [(name, name == ports.output) for ports in PORTS.values() for name in astuple(ports)]
        self.watches = Watches(dut, streams)

    async def start(self) -> ArrayBench:
        """Start the clock and reset the unit."""
        clocks.start(self.dut, CLOCK_NS, self.rng)
        cocotb.start_soon(self.watches.run())
        await self.reset()
        return self

    async def reset(self, cycles: int = 2) -> None:
        """Reset the unit, which loses all jobs; ports with clocks of their own get the longer reset that they need."""
        cycles = max(cycles, _SLOWEST if clocks.own(self.dut) else 0)
        self._reset.drive(True)
        await ClockCycles(self.dut.clk, cycles)
        self._reset.drive(False)
        for ends in (self.i, self.scales, self.o):
            for end in ends.values():
                end.forget()
        await ClockCycles(self.dut.clk, 2)

    async def idle(self, cycles: int) -> None:
        """Wait for some cycles."""
        await ClockCycles(self.dut.clk, cycles)

    def stall(self, pattern: str) -> None:
        """Stall every port, and every channel of the register port, by this pattern, independently of each other."""
        sources, sinks = (random_patterns(self.rng, lambda rng, end=end: PATTERNS[pattern](rng)[end]) for end in (0, 1))
        for channel in Channel:
            self.i[channel].stall(next(sources))
            self.scales[channel].stall(next(sources))
            self.o[channel].stall(next(sinks))
        self.bus.stall(sources)
        self.cover("cp_stall", pattern)

    async def within(self, cycles: int, what: Awaitable[_Result], name: str) -> _Result:
        """Return the result of ``what``; AssertionError if it does not end within ``cycles`` cycles."""
        try:
            return await with_timeout(what, cycles * CLOCK_NS, "ns")
        except SimTimeoutError:
            state = [f"{channel.value}: {await self.read('STATUS', channel)}" for channel in Channel]
            raise AssertionError(f"{name}: no end after {cycles} cycles; {'; '.join(state)}") from None

    async def read(self, name: str, channel: Channel | None = None, index: int = 0) -> dict[str, int]:
        """Return the fields of a register."""
        return registers.register(name).unpack(await self.bus.read(registers.address(name, channel, index)))

    async def number(self, name: str, channel: Channel) -> int:
        """Return a counter: a register that is one number, or a pair of halves."""
        if f"{name}_LOW" in _NAMES:
            low = await self.read(f"{name}_LOW", channel)
            return low["value"] | (await self.read(f"{name}_HIGH", channel))["value"] << register_types.REGISTER_BITS
        return (await self.read(name, channel))["value"]

    async def write(self, name: str, channel: Channel | None = None, index: int = 0, **fields: int) -> None:
        """Write fields of a register, and zeros to its other ones; AssertionError if the unit refuses."""
        register: Register = registers.register(name)
        response = await self.bus.write(registers.address(name, channel, index), register.pack(**fields))
        assert not response, f"a write to {name} was answered with {response}"

    async def errors(self, channel: Channel, clear: bool = True) -> set[str]:
        """Return the names of the sticky errors; ``clear`` clears them and their interrupt."""
        found = {name for name, bit in (await self.read("ERRORS", channel)).items() if bit}
        if clear:
            await self.write("ERRORS", channel, **dict.fromkeys(found, 1))
            await self.write("INTERRUPT_STATUS", channel, job_done=1, error=1)
        return found

    async def program(
        self, channel: Channel, job: Job, bank: int = 0, payload_bytes: int = 0, source: int = ScaleSource.EITHER
    ) -> None:
        """Write a job's registers one by one and start it; ``payload_bytes`` 0: not told; ``source`` of its scales."""
        await self.write("MODE", channel, mode=job.mode, bank=bank, scales=source)
        await self.write("BEATS", channel, value=job.beats)
        await self.write("ROW_BEATS", channel, value=job.row_beats)
        await self.write("CHANNEL_ROWS", channel, value=job.channel_rows)
        if isinstance(job.how, AffineSettings):
            await self.bus.write(registers.address("QUANTIZER", channel), registers.pack_quantizer(job.how))
            if channel is Channel.COMPRESS:
                await self.write("SEED", channel, value=job.how.seed)
        if isinstance(job.how, ShiftCoding) and self.config.has_gmc:
            await self.write("CODING", channel, coder=job.how.coder, point=job.how.point)
        if isinstance(job.how, MxSettings):
            await self.bus.write(registers.address("MX_CODING", channel), registers.pack_mx(job.how))
        if channel is Channel.DECOMPRESS:
            await self.write("PAYLOAD_BYTES_LOW", channel, value=payload_bytes)
            await self.write("PAYLOAD_BYTES_HIGH", channel, value=0)
        await self.write("CONTROL", channel, start=1)

    async def write_table(self, channel: Channel, bank: int, shifts: Sequence[int]) -> None:
        """Write a shift table."""
        first = registers.address(f"SHIFTS{bank}", channel)
        await self.bus.write_many(first, registers.pack_shift_registers(tuple(shifts)))

    def feed(self, channel: Channel, item: Exchange, raw: bytes | None = None) -> None:
        """Queue scales and data of a job at the ports; ``raw`` in place of the right data."""
        job = job_of(channel, item)
        if job.mode.has_scales:
            self.scales[channel].send(self.scale_packet(job))
        self.i[channel].send(input_of(channel, item) if raw is None else raw)

    def scale_packet(self, job: Job) -> bytes:
        """Return the scales of a job as the scale port takes them."""
        return scales_with_offsets(job) if self.config.has_offsets else scale_bytes(job)

    async def run_job(self, channel: Channel, item: Exchange) -> None:
        """Run one good job from its table to its result, without the driver."""
        job = job_of(channel, item)
        if job.shifts:
            await self.write_table(channel, 0, job.shifts)
        payload_bytes = len(item.payload) if channel is Channel.DECOMPRESS else 0
        await self.program(channel, job, payload_bytes=payload_bytes)
        self.feed(channel, item)
        self.check(channel, item, await self.result(channel, job))

    async def open(self, device: Device | None = None, **options: Any) -> Driver:
        """Return the reference driver, ready to use."""
        driver = Driver(device or self.device, **options)
        await driver.open()
        return driver

    async def play(self, driver: Driver, jobs: Mapping[Channel, Sequence[Exchange]]) -> None:
        """Run jobs through the driver, both directions at once, and check every result."""
        tasks = {
            channel: cocotb.start_soon(queue_of(driver, channel).run(_driver_jobs(channel, items)))
            for channel, items in jobs.items()
        }
        work = sum(job_of(channel, item).beats for channel, items in jobs.items() for item in items)
        count = sum(map(len, jobs.values()))
        for channel, task in tasks.items():
            results = await self.within(2000 * count + 60 * work, task, f"{len(jobs[channel])} jobs to {channel.value}")
            for item, result in zip(jobs[channel], results, strict=True):
                self.check(channel, item, bytes(result.data))

    async def result(self, channel: Channel, job: Job) -> bytes:
        """Return the next packet that comes out."""
        return await self.within(_patience(job), self.o[channel].receive(), f"{channel.value} {job.mode.label}")

    def check(self, channel: Channel, item: Exchange, result: bytes) -> None:
        """Compare a result with the golden one, count it and note what it covers."""
        job = job_of(channel, item)
        if channel is Channel.COMPRESS:
            if result != item.payload:
                pairs = enumerate(zip(result, item.payload, strict=False))
                place = next((index for index, (got, golden) in pairs if got != golden), "the end")
                lengths = f"{len(result)} bytes, the golden model gives {len(item.payload)}"
                raise AssertionError(f"{item.name}: {lengths}; first difference at {place}")
        else:
            expected = len(float_bytes(item.restored))
            assert len(result) == expected, f"{item.name}: {len(result)} bytes of values, not {expected}"
            beats = float_beats(result, job)
            differs = [index for index in range(len(beats)) if not same_bits(beats[index], item.restored[index])]
            assert not differs, f"{item.name}: {len(differs)} of {len(beats)} rows differ, first {differs[0]}"
        self.cases += 1
        self.cover("cp_mode", cover_points.setting(self.config, job.mode, channel))
        if isinstance(job.how, ShiftCoding) and self.config.has_gmc:
            self.cover("cp_coder", cover_points.coding(job.how.coder, channel))
            if channel is Channel.DECOMPRESS:
                self.cover("cp_point", cover_points.point(job.how.point))
        self.cover("cp_value_word", cover_points.last_word(self.config, job.beats))
        self.cover("cp_packed_word", cover_points.filling(self.config, len(item.payload)))

    def report(self) -> None:
        """Implement :class:`~cdu_verif.simulation.bench.Bench`; no packet may be left at the outputs."""
        for channel, end in self.o.items():
            assert not end.waiting(), f"{channel.value}: {end.waiting()} packets that nobody asked for"
        self.cycle = self.watches.cycle
        super().report()


_NAMES = frozenset(entry.name for entry in channel_block.CHANNEL)


def job_of(channel: Channel, item: Exchange) -> Job:
    """Return the job of one direction."""
    return item.compression if channel is Channel.COMPRESS else item.decompression


def input_of(channel: Channel, item: Exchange) -> bytes:
    """Return the bytes of a direction's input."""
    return float_bytes(item.beats) if channel is Channel.COMPRESS else item.payload


def queue_of(driver: Driver, channel: Channel) -> JobQueue:
    """Return the driver's queue of a direction."""
    return driver.compress if channel is Channel.COMPRESS else driver.decompress


def _driver_jobs(channel: Channel, items: Sequence[Exchange]) -> list[DriverJob]:
    return [driver_job(job_of(channel, item), input_of(channel, item)) for item in items]


def _patience(job: Job) -> int:
    """Return the cycles after which a job is regarded as hanging, whatever the stalls."""
    return 2000 + 60 * job.beats
