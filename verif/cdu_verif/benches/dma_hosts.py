"""Tests of a DMA engine with hosts that break its rules: nothing is touched that was not rung, and the next jobs are right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import cocotb
from actcodec.backends.job import DTYPES
from cdu_driver import open_ring
from cdu_spec import registers
from cdu_spec.dma import (
    COMPLETION,
    COMPLETION_BYTES,
    DESCRIPTOR_BYTES,
    DMA_CHANNEL,
    MEMORY_ADDRESS_BITS,
    RING_REGISTERS,
    dma_address,
    dma_register,
    part,
)
from cdu_spec.ports import scale_port_bytes
from cdu_spec.register_types import REGISTER_BITS, Access, Channel
from cdu_spec.registers import channel_registers
from cocotb.triggers import ClockCycles, FallingEdge

from cdu_verif.benches.dma_bench import DmaBench, DmaJob, Host
from cdu_verif.content.tensors import TABLES, of_tensor, tensor
from cdu_verif.simulation import cover_points
from cdu_verif.simulation.axi_ports import SLVERR
from cdu_verif.simulation.bench import simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.stimulus.register_values import refused, taken

_CONFIG = simulated_config()
#: Signals that register ATTRIBUTES sets.
_ATTRIBUTES = tuple(field.name for field in dma_register("ATTRIBUTES").fields)
#: Cycles in which an engine that should do something has begun to, or has shown that it does not.
_WHILE = 400
#: Accesses to registers that a host makes while it waits.
_LOOKS = 4000


@dataclass
class HostRing:
    """A ring that a host has opened: its address, its places, and how many jobs were rung."""

    address: int
    log2: int
    rung: int = 0

    @property
    def room(self) -> range:
        """Its bytes."""
        return range(self.address, self.address + (DESCRIPTOR_BYTES << self.log2))


class HostBench(DmaBench):
    """A host of each direction; memory notes what is touched beyond the jobs that were rung."""

    def __init__(self, dut: Any, test: str) -> None:
        super().__init__(dut, test)
        self.memory.places = []
        self._rings: dict[Channel, list[range]] = {channel: [] for channel in Channel}

    def any_job(self, channel: Channel) -> DmaJob:
        """A small job, whose record is cleared."""
        mode = self.rng.choice(_CONFIG.built_modes)
        shape = (1, self.rng.randint(1, 2), self.rng.randint(1, 4), self.rng.randint(1, 40))
        x = tensor(self.rng, shape, "relu", DTYPES[_CONFIG.dtype])
        job = self.job(channel, x, of_tensor(self.config, self.rng, x, mode, "relu", TABLES))
        self.memory.put(job.descriptor.completion, bytes(COMPLETION_BYTES))
        return job

    def allow(self, channel: Channel, *places: range, anew: bool = False) -> None:
        """Let a direction touch these places as well, or no others."""
        self._rings[channel] = ([] if anew else self._rings[channel]) + list(places)
        self.memory.places = [place for listed in self._rings.values() for place in listed]

    async def opened(self, channel: Channel, log2: int) -> HostRing:
        """A new ring elsewhere, in memory of zeros; from then on nothing of an earlier one may be touched."""
        address = self.room(DESCRIPTOR_BYTES << log2, DESCRIPTOR_BYTES)
        self.memory.put(address, bytes(DESCRIPTOR_BYTES << log2))
        await open_ring(Host(self.bus), channel, address, log2, _LOOKS)
        self.allow(channel, anew=True)
        return HostRing(address, log2)

    async def ring(self, channel: Channel, ring: HostRing, *jobs: DmaJob) -> None:
        """Put jobs into a ring and say that they are there."""
        for job in jobs:
            place = ring.address + ring.rung % (1 << ring.log2) * DESCRIPTOR_BYTES
            self.memory.put(place, job.descriptor.pack())
            ring.rung += 1
            self.allow(channel, range(place, place + DESCRIPTOR_BYTES), *_places(job))
        await self.write("TAIL", channel, value=ring.rung)

    async def head(self, channel: Channel) -> int:
        """HEAD of a direction."""
        return (await self.read("HEAD", channel))["value"]

    async def done(self, channel: Channel, count: int) -> None:
        """Wait until so many jobs of a ring have their records; AssertionError when that takes too long."""
        for _ in range(_LOOKS):
            if await self.head(channel) == count:
                return
        raise AssertionError(f"{channel.value}: HEAD is {await self.head(channel)}, not {count}: the engine hangs")

    async def still(self, channel: Channel, doing: str) -> None:
        """AssertionError when the engine does anything in a while."""
        bursts, head = self.memory.bursts, await self.head(channel)
        await ClockCycles(self.dut.clk, _WHILE)
        assert (self.memory.bursts, await self.head(channel)) == (bursts, head), f"{channel.value}: the engine goes on {doing}"

    async def only(self, channel: Channel, *names: str) -> None:
        """AssertionError when ERRORS has other bits than these; clears them."""
        found = await self.errors(channel)
        assert found == set(names), f"{channel.value}: ERRORS has {found}, not {set(names)}"
        await self.write("ERRORS", channel, **dict.fromkeys(names, 1))

    async def refuses(self, place: int, value: int, what: str) -> None:
        """AssertionError when a write is not refused and told, or changes what is read."""
        before = await self.bus.raw_read(place)
        assert await self.bus.raw_write(place, value) == SLVERR, f"{what} at {place:#x} took {value:#x}"
        told = registers.register("BAD_ADDRESS").unpack(await self.bus.read(registers.address("BAD_ADDRESS")))
        assert told == {"address": place, "write": 1}, f"BAD_ADDRESS is {told} after a write to {place:#x}"
        assert await self.bus.read(registers.address("BUS_ERRORS")), f"a write to {place:#x} is not told"
        await self.bus.write(registers.address("BUS_ERRORS"), 1)
        assert await self.bus.raw_read(place) == before, f"{what} at {place:#x} has changed"
        self.cases += 1

    def owners(self, address: int) -> list[Channel]:
        """Return the directions that may touch the word of memory at an address: two, if it has ends of places of both."""
        word = range(address, address + self.config.dma_bits // 8)
        return [
            channel
            for channel, places in self._rings.items()
            if any(place.start < word.stop and word.start < place.stop for place in places)
        ]

    def nothing_strayed(self) -> None:
        """AssertionError when something was touched that was not rung."""
        assert not self.memory.strays, f"{len(self.memory.strays)} accesses beyond what was rung: {self.memory.strays[:4]}"

    def hit(self, channel: Channel, event: str) -> None:
        """Cover something that a host did, and that was answered rightly."""
        self.nothing_strayed()
        self.cover("cp_host", cover_points.host(channel, event))


def _places(job: DmaJob) -> list[range]:
    """Return the addresses that a job may touch."""
    found = job.descriptor
    values = prod((found.n, found.c, found.h, found.w)) * _CONFIG.dtype.bits // 8
    sizes = {
        "tensor": values,
        "payload": found.payload_bytes,
        "scales": found.c * scale_port_bytes(_CONFIG.has_offsets),
        "completion": COMPLETION_BYTES,
    }
    return [range(begin := getattr(found, name), begin + size) for name, size in sizes.items()]


async def _works(bench: HostBench, channel: Channel) -> None:
    """A new ring runs some jobs, and wraps."""
    jobs = [bench.any_job(channel) for _ in range(3)]
    ring = await bench.opened(channel, 1)
    for number, job in enumerate(jobs):
        await bench.ring(channel, ring, job)
        await bench.done(channel, number + 1)
    for number, job in enumerate(jobs):
        bench.record(job, number)
    await bench.only(channel)
    bench.nothing_strayed()


@bench_test(HostBench)
async def wrong_tails(bench: HostBench) -> None:
    """TAIL too far ahead or behind: the engine stands still, says so, and goes on when TAIL is right and the bit cleared."""
    for channel in Channel:
        ring = await bench.opened(channel, 2)
        jobs = [bench.any_job(channel) for _ in range(6)]
        await bench.ring(channel, ring, *jobs[:3])
        await bench.done(channel, 3)
        wrong = {cover_points.TAIL_AHEAD: (3 + 5, 3 + (1 << 31)), cover_points.TAIL_BEHIND: (2, 0)}
        for event, tails in wrong.items():
            for tail in tails:
                await bench.write("TAIL", channel, value=tail)
                await bench.still(channel, f"with TAIL {tail} and HEAD 3 in a ring of 4")
                await bench.write("ERRORS", channel, tail=1)
                await bench.still(channel, "when the bit is cleared and TAIL is wrong")
                assert (await bench.read("INTERRUPT_STATUS", channel))["error"]
                await bench.write("TAIL", channel, value=3)
                await bench.only(channel, "tail")
                await bench.write("INTERRUPT_STATUS", channel, job_done=1, error=1)
                await bench.still(channel, "with nothing to do")
            bench.hit(channel, event)
        await bench.ring(channel, ring, *jobs[3:])
        await bench.done(channel, 6)
        for number, job in enumerate(jobs):
            bench.record(job, number)
        await bench.only(channel)
        # TAIL is checked likewise for a full ring, and for one whose jobs are in progress
        more = [bench.any_job(channel) for _ in range(4)]
        await bench.ring(channel, ring, *more)
        await bench.write("TAIL", channel, value=ring.rung + 1)
        for _ in range(_LOOKS):
            if await bench.errors(channel):
                break
        await bench.write("TAIL", channel, value=ring.rung)
        await bench.write("ERRORS", channel, tail=1)
        await bench.done(channel, ring.rung)
        for number, job in enumerate(more):
            bench.record(job, 6 + number)
        bench.nothing_strayed()
        await _works(bench, channel)


@bench_test(HostBench)
async def rings_that_cannot_be(bench: HostBench) -> None:
    """Numbers that the registers of a ring do not take, and a ring whose second place has no address."""
    for channel in Channel:
        for name in RING_REGISTERS:
            entry = dma_register(name)
            place = dma_address(name, channel)
            assert not await bench.bus.raw_write(place, taken(entry, bench.rng))
            for value in refused(entry, bench.rng):
                await bench.refuses(place, value, name)
                await bench.only(channel, "ring")
            bench.hit(channel, cover_points.bad_number(name))
        last = (1 << MEMORY_ADDRESS_BITS) - DESCRIPTOR_BYTES
        await bench.write("RING_LOW", channel, address=dma_register("RING_LOW").field("address").get(last))
        await bench.write("RING_HIGH", channel, address=last >> REGISTER_BITS)
        await bench.write("RING_SIZE", channel, log2=1)
        bench.allow(channel, range(last, last + DESCRIPTOR_BYTES))  # where no memory is
        await bench.write("CONTROL", channel, enable=1)
        await bench.write("TAIL", channel, value=2)
        await bench.done(channel, 1)
        await bench.still(channel, "beyond the last address")
        await bench.only(channel, "descriptor", "ring")
        bench.hit(channel, cover_points.BEYOND)
        await _works(bench, channel)


@bench_test(HostBench)
async def what_the_engine_owns(bench: HostBench) -> None:
    """Writes to a ring that runs and to the unit's registers, CONTROL.abort too, are refused, and no job suffers."""
    bench.behave("coins")
    for channel in Channel:
        ring = await bench.opened(channel, 2)
        owned = [
            (entry, registers.address(entry.name, channel, index))
            for entry in channel_registers(channel, bench.config)
            for index in range(entry.count)
        ]
        if not bench.full:
            owned = bench.rng.sample(owned, 12)
        control = registers.register("CONTROL")
        commands = [control.pack(abort=1), control.pack(abort=1, flush=1), control.pack(start=1)]
        tries: list[tuple[str, int, int]] = [
            (cover_points.ABORT, registers.address("CONTROL", channel), one) for one in commands
        ]
        tries += [(cover_points.OWNED, place, taken(entry, bench.rng)) for entry, place in owned]
        tries += [
            (cover_points.moved(name), dma_address(name, channel), taken(dma_register(name), bench.rng))
            for name in RING_REGISTERS
        ]
        for event, place, value in bench.rng.sample(tries, len(tries)):
            job, first = bench.any_job(channel), ring.rung
            await bench.ring(channel, ring, job)
            await ClockCycles(bench.dut.clk, bench.rng.randint(0, 150))
            before = await bench.bus.raw_read(place) if event != cover_points.OWNED else None
            assert await bench.bus.raw_write(place, value) == SLVERR, f"{event}: a write of {value:#x} to {place:#x} was taken"
            told = await bench.bus.read(registers.address("BAD_ADDRESS"))
            assert registers.register("BAD_ADDRESS").unpack(told) == {"address": place, "write": 1}
            assert before is None or await bench.bus.raw_read(place) == before, f"{event}: {place:#x} has changed"
            await bench.only(channel, "owned")
            await bench.done(channel, first + 1)
            bench.record(job, first)
            bench.hit(channel, event)
        await bench.bus.write(registers.address("BUS_ERRORS"), 1)
        # With the bit set nothing is fetched
        await bench.bus.raw_write(registers.address("WATCHDOG", channel), 1)
        job = bench.any_job(channel)
        await bench.ring(channel, ring, job)
        await bench.still(channel, "with ERRORS.owned")
        await bench.only(channel, "owned")
        await bench.done(channel, ring.rung)
        bench.record(job, ring.rung - 1)
        await _works(bench, channel)


async def _requests(bench: HostBench, found: dict[Channel, set[int]]) -> None:
    """Collect the attributes of requests as values of register ATTRIBUTES, by the direction to which each belongs."""
    while True:
        await FallingEdge(bench.dut.clk)
        for name in ("ar", "aw"):
            port = {part: getattr(bench.dut, f"m_axi_{name}{part}") for part in ("valid", "addr", *_ATTRIBUTES)}
            if port["valid"].value:
                value = dma_register("ATTRIBUTES").pack(**{part: int(port[part].value) for part in _ATTRIBUTES})
                owners = bench.owners(int(port["addr"].value))
                if len(owners) == 1:
                    found[owners[0]].add(value)


@bench_test(HostBench)
async def attributes_of_a_ring(bench: HostBench) -> None:
    """Every access of a direction has what its ring says; after a reset normal memory that is bufferable, and zeros."""
    entry = dma_register("ATTRIBUTES")
    settings = [dict.fromkeys(Channel, entry.pack(cache=0b0011))]
    for _ in range(6 if bench.full else 3):
        settings.append({channel: taken(entry, bench.rng) for channel in Channel})
    for turn, wanted in enumerate(settings):
        found: dict[Channel, set[int]] = {channel: set() for channel in Channel}
        watch = cocotb.start_soon(_requests(bench, found))
        for channel, value in wanted.items():
            if turn:
                assert not await bench.bus.raw_write(dma_address("ATTRIBUTES", channel), value)
            assert await bench.bus.read(dma_address("ATTRIBUTES", channel)) == value
        tasks = [cocotb.start_soon(_works(bench, channel)) for channel in Channel]
        for task in tasks:
            await task
        watch.cancel()
        for channel, value in wanted.items():
            told = entry.unpack(value)
            allocates = told["cache"] & 0b1100 if told["cache"] & 0b0010 else 0
            expected = entry.pack(**told | {"cache": allocates | told["cache"] & 0b0011})
            assert found[channel] == {expected}, f"{channel.value}: {found[channel]}, not {expected:#x}"
            bench.cases += 1
            await bench.write("CONTROL", channel, enable=0)
            while (await bench.read("STATUS", channel))["busy"]:
                pass


@bench_test(HostBench)
async def bits_of_no_field(bench: HostBench) -> None:
    """Registers of flags ignore bits outside their fields, while jobs run, too; none of the others takes one."""
    for channel in Channel:
        places = [(dma_address(entry.name, channel), entry) for entry in DMA_CHANNEL]
        places += [(registers.address(entry.name), entry) for entry in registers.GLOBAL]
        ring = await bench.opened(channel, 2)
        for place, entry in places:
            if entry.access is not Access.RW or entry.name in RING_REGISTERS:
                continue
            for value in refused(entry, bench.rng):
                await bench.refuses(place, value, entry.name)
            if not entry.is_exact and entry.fields[0].is_flag:  # bits of no field do nothing
                before = await bench.bus.read(place)
                assert not await bench.bus.raw_write(place, before | sum(1 << bit for bit in range(8, REGISTER_BITS)))
                assert await bench.bus.read(place) == before
        job = bench.any_job(channel)
        await bench.ring(channel, ring, job)
        await bench.done(channel, 1)
        bench.record(job, 0)
        bench.nothing_strayed()


@bench_test(HostBench)
async def records_are_done_last(bench: HostBench) -> None:
    """Memory that refuses any word of a record: `done` is 0 unless all the rest is there, wherever the record begins."""
    size, flag = _CONFIG.dma_bits // 8, part(COMPLETION, "done")
    for channel in Channel:
        for offset in (0, 4, size - 4):
            for word in range(-(-(offset + COMPLETION_BYTES) // size)):
                ring = await bench.opened(channel, 0)
                good = bench.any_job(channel)
                begin = bench.room(offset + COMPLETION_BYTES, 64) + offset
                bench.memory.put(begin, bytes(COMPLETION_BYTES))
                job = replace(good, descriptor=replace(good.descriptor, completion=begin))
                faulty = begin - offset + word * size
                bench.memory.faulty = range(faulty, faulty + size)
                await bench.ring(channel, ring, job)
                await bench.done(channel, 1)
                bench.memory.faulty = range(0)
                left = bench.memory.get(begin, COMPLETION_BYTES)
                assert not any(left[flag.offset :]), (
                    f"{channel.value}: word {word} of a record at {begin:#x} is missing: {left.hex()}"
                )
                await bench.only(channel, "completion")
                bench.cases += 1
        await _works(bench, channel)


async def _running(bench: HostBench, channel: Channel) -> None:
    """The engine runs; the host only comes back."""


async def _stopped(bench: HostBench, channel: Channel) -> None:
    """The engine was told to stop, and nobody waited."""
    await bench.write("CONTROL", channel, enable=0)


async def _stopped_and_on(bench: HostBench, channel: Channel) -> None:
    """The engine was told to stop, and to go on before it did."""
    await bench.write("CONTROL", channel, enable=0)
    await bench.write("CONTROL", channel, enable=1)


async def _wild(bench: HostBench, channel: Channel) -> None:
    """The host has written any number to TAIL."""
    away = bench.rng.choice((1 << 8, 1 << 31, -9))
    await bench.write("TAIL", channel, value=(await bench.head(channel) + away) % (1 << REGISTER_BITS))


async def _careless(bench: HostBench, channel: Channel) -> None:
    """A driver has opened a new ring as if the engine had never run: all that it says of the ring is refused."""
    zeros = bench.room(DESCRIPTOR_BYTES, DESCRIPTOR_BYTES)
    bench.memory.put(zeros, bytes(DESCRIPTOR_BYTES))
    values = {"RING_LOW": zeros % (1 << REGISTER_BITS), "RING_HIGH": zeros >> REGISTER_BITS, "RING_SIZE": 0}
    for name, value in values.items():
        assert await bench.bus.raw_write(dma_address(name, channel), value) == SLVERR
    await bench.write("TAIL", channel, value=0)
    await bench.write("CONTROL", channel, enable=1)


#: Action of the host before it restarts, by the name of the bin; a reset is separate, because it resets both directions.
_BEFORE: dict[str, Callable[[HostBench, Channel], Awaitable[None]]] = dict(
    zip(cover_points.RESTARTS, (_running, _stopped, _stopped_and_on, _wild, _careless), strict=True)
)


async def _restarts(bench: HostBench, channel: Channel, events: list[str]) -> None:
    """One host, which comes back at random moments."""
    for event in events:
        ring = await bench.opened(channel, bench.rng.randint(0, 2))
        jobs = [bench.any_job(channel) for _ in range(1 << ring.log2)]
        await bench.ring(channel, ring, *jobs)
        await ClockCycles(bench.dut.clk, bench.rng.randint(0, 900))
        await _BEFORE[event](bench, channel)
        await ClockCycles(bench.dut.clk, bench.rng.choice((0, 30, 300)))
        await _works(bench, channel)
        bench.hit(channel, event)


@bench_test(HostBench, pattern=["full_rate", "coins"])
async def hosts_restart(bench: HostBench, pattern: str) -> None:
    """Hosts of both directions come back at random moments and open a new ring elsewhere, in memory of zeros."""
    bench.behave(pattern)
    bench.memory.latency = bench.rng.choice((0, 20))
    tasks = []
    for channel in Channel:
        events = list(_BEFORE) * (4 if bench.full else 1)
        tasks.append(cocotb.start_soon(_restarts(bench, channel, bench.rng.sample(events, len(events)))))
    for task in tasks:
        await task


@bench_test(HostBench)
async def hosts_restart_after_a_reset(bench: HostBench) -> None:
    """A reset at a random moment, and one before anything was started."""
    for moment in (0, *(bench.rng.randint(1, 900) for _ in range(8 if bench.full else 3))):
        for channel in Channel if moment else ():
            ring = await bench.opened(channel, 1)
            await bench.ring(channel, ring, *(bench.any_job(channel) for _ in range(2)))
        await ClockCycles(bench.dut.clk, moment)
        await bench.reset()
        for channel in Channel:
            bench.allow(channel, anew=True)
        for channel in Channel:
            await _works(bench, channel)
            bench.hit(channel, cover_points.RESET if moment else cover_points.NEVER_STARTED)
