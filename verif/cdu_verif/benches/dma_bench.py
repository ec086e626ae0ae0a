"""Bench of a unit with its DMA engine: memory at its port, jobs as descriptors, results as the golden model's bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cocotb
import torch
from actcodec.backends.job import Job, tensor_from_beats
from cdu_driver import BusError, open_ring, stop_ring
from cdu_spec.bitstream import SHIFT_TABLE_BYTES, pack_shifts
from cdu_spec.dma import (
    COMPLETION_BYTES,
    DESCRIPTOR_BYTES,
    Completion,
    Descriptor,
    dma_address,
    dma_register,
    row_major_strides,
    tensor_extents,
)
from cdu_spec.matrix_view import MatrixView
from cdu_spec.register_types import REGISTER_BITS, Channel
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, SimTimeoutError, with_timeout
from torch import Tensor

from cdu_verif.cases.crc import crc_of
from cdu_verif.content.payloads import float_bytes
from cdu_verif.content.tensors import Exchange
from cdu_verif.simulation.axi_memory import AxiMemory
from cdu_verif.simulation.axi_ports import Registers, random_patterns
from cdu_verif.simulation.bench import CLOCK_NS, Bench
from cdu_verif.simulation.driver_jobs import scales_in_memory, settings_parts
from cdu_verif.simulation.patterns import PATTERNS

#: Address of memory, above 32 bits, and its number of bytes.
BASE, MEMORY_BYTES = 0x12_3400_0000, 1 << 22
#: Content of unused memory; no golden value consists of it.
_FILLING = 0xA5


@dataclass(frozen=True)
class DmaJob:
    """A descriptor, and its golden result.

    Parameters
    ----------
    name
        Name for messages.
    descriptor
        Descriptor of the job.
    place
        Address of its result.
    result
        Bytes from there on, filling included where nothing is written.
    size
        Value of ``bytes`` of the record.
    errors, unit_errors
        Names of the bits set in the record.
    """

    name: str
    descriptor: Descriptor
    place: int
    result: bytes
    size: int
    errors: frozenset[str] = frozenset()
    unit_errors: frozenset[str] = frozenset()


class Host:
    """Register port, in the form that the driver needs."""

    def __init__(self, bus: Registers) -> None:
        self._bus = bus

    async def read(self, address: int) -> int:
        """Return the register at a byte address."""
        return await self._bus.read(address)

    async def write(self, address: int, value: int) -> None:
        """Write the register at a byte address; BusError if the write is refused."""
        response = await self._bus.write(address, value)
        if response:
            raise BusError(f"a write of {value:#x} to {address:#x} was answered with {response}")


class DmaBench(Bench):
    """One simulated unit with engine and memory; parameters as in :class:`~cdu_verif.simulation.bench.Bench`."""

    def __init__(self, dut: Any, test: str) -> None:
        super().__init__(dut, test)
        self.memory = AxiMemory(dut, "m_axi", MEMORY_BYTES, BASE)
        self._next = BASE
        self.empty()
        self.bus = Registers(dut)
        self._value_bytes = self.config.dtype.bits // 8

    async def start(self) -> DmaBench:
        """Start the clock and reset the unit."""
        Clock(self.dut.clk, CLOCK_NS, unit="ns").start()
        await self.reset()
        return self

    async def reset(self, cycles: int = 2) -> None:
        """Reset unit, engine, and the models at their ports."""
        self._reset.drive(True)
        await ClockCycles(self.dut.clk, cycles)
        self._reset.drive(False)
        await ClockCycles(self.dut.clk, 2)

    def behave(self, pattern: str) -> None:
        """Let every channel of every port behave by this pattern, independently of the others."""
        self.memory.stall(random_patterns(self.rng, lambda rng: PATTERNS[pattern](rng)[0]))
        self.bus.stall(random_patterns(self.rng, lambda rng: PATTERNS[pattern](rng)[0]))

    def room(self, size: int, align: int = 1) -> int:
        """Return an unused address in memory, with some room around it."""
        begin = -(-(self._next + 16) // align) * align
        self._next = begin + size
        assert self._next < BASE + MEMORY_BYTES, "the memory is full"
        return begin

    def empty(self) -> None:
        """Clear the memory, with everything that jobs wrote."""
        self._next = BASE
        self.memory.put(BASE, bytes([_FILLING]) * MEMORY_BYTES)

    def put(self, content: bytes, align: int = 1) -> int:
        """Put bytes into memory and return their address."""
        begin = self.room(len(content), align)
        self.memory.put(begin, content)
        return begin

    def compression(self, x: Tensor, item: Exchange, room: int | None = None, crc: bool = False) -> DmaJob:
        """Return the job of compressing a tensor; ``room`` for the payload and its CRC, by default as much as they need."""
        job, golden = item.compression, item.payload + (crc_of(item.payload) if crc else b"")
        room = len(golden) if room is None else room
        place = self.room(max(room, len(golden)) + 64)
        tensor = self.put(float_bytes(x.contiguous()), self._value_bytes)
        descriptor = replace(self._described(x.shape, job, tensor, place, room), payload_crc=int(crc))
        kept = golden[:room]
        filling = bytes([_FILLING]) * (len(golden) + 64 - len(kept))
        errors = frozenset({"overflow"} if room < len(golden) else ())
        return DmaJob(f"compress {item.name}", descriptor, place, kept + filling, len(golden), errors)

    def decompression(self, x: Tensor, item: Exchange, crc: bool = False) -> DmaJob:
        """Return the job of decompressing :meth:`compression`'s result."""
        return self.restoration(restored(x, item), item, crc)

    def restoration(self, x: Tensor, item: Exchange, crc: bool = False) -> DmaJob:
        """Return the job whose result is the tensor ``x``."""
        job, golden = item.decompression, float_bytes(x.contiguous())
        place = self.room(len(golden) + 64, self._value_bytes)
        content = item.payload + (crc_of(item.payload) if crc else b"")
        described = self._described(x.shape, job, place, self.put(content), len(content))
        descriptor = replace(described, payload_crc=int(crc))
        values = job.beats * 8 * self._value_bytes
        return DmaJob(f"decompress {item.name}", descriptor, place, golden + bytes([_FILLING]) * 64, values)

    def job(self, channel: Channel, x: Tensor, item: Exchange, crc: bool = False) -> DmaJob:
        """Return the job of one direction."""
        return self.compression(x, item, crc=crc) if channel is Channel.COMPRESS else self.decompression(x, item, crc)

    def _described(self, shape: Any, job: Job, tensor: int, payload: int, payload_bytes: int) -> Descriptor:
        extents = tensor_extents(tuple(shape), job.mode)
        factors = self.put(scales_in_memory(job, extents[1]), 4)
        described = Descriptor(
            *(job.mode, job.dtype, *extents, tensor),
            **row_major_strides(extents, self._value_bytes),
            payload=payload,
            payload_bytes=payload_bytes,
            completion=self.room(COMPLETION_BYTES, 4),
            scales=factors,
            shifts=pack_shifts(job.shifts) if job.shifts else bytes(SHIFT_TABLE_BYTES),
            tag=self.rng.getrandbits(REGISTER_BITS),
        )
        return replace(described, **settings_parts(job))

    async def write(self, name: str, channel: Channel, **fields: int) -> None:
        """Write a register of the engine."""
        response = await self.bus.write(dma_address(name, channel), dma_register(name).pack(**fields))
        assert not response, f"a write to {name} was answered with {response}"

    async def read(self, name: str, channel: Channel) -> dict[str, int]:
        """Return the fields of a register of the engine."""
        return dma_register(name).unpack(await self.bus.read(dma_address(name, channel)))

    async def errors(self, channel: Channel) -> set[str]:
        """Return the names of the bits of ERRORS that are set."""
        return {name for name, bit in (await self.read("ERRORS", channel)).items() if bit}

    async def open(self, channel: Channel, log2: int) -> int:
        """Give a direction an empty ring and return its address."""
        ring = self.room(DESCRIPTOR_BYTES << log2, DESCRIPTOR_BYTES)
        await open_ring(Host(self.bus), channel, ring, log2)
        await self.write("INTERRUPT_ENABLE", channel)
        return ring

    async def close(self, channel: Channel) -> None:
        """Stop a ring; AssertionError if it stays busy."""
        await stop_ring(Host(self.bus), channel, 100)
        assert (await self.read("HEAD", channel))["value"] == 0

    async def play(self, channel: Channel, jobs: list[DmaJob], log2: int = 2, patience: int = 60) -> list[Completion]:
        """Run jobs through a ring, which wraps if it has fewer places, compare everything and return the records.

        For a job that is run several times only its last record can be compared.
        """
        ring, places = await self.open(channel, log2), 1 << log2
        head, given = 0, 0
        while head < len(jobs):
            while given < len(jobs) and given - head < places:
                self.memory.put(ring + given % places * DESCRIPTOR_BYTES, jobs[given].descriptor.pack())
                given += 1
            await self.write("TAIL", channel, value=given)
            work = max(job.size for job in jobs) + 4000
            head = await self._progress(channel, head, patience * work)
        last = {id(job): number for number, job in enumerate(jobs)}
        records = [self.record(job, last[id(job)]) for job in jobs]
        await self.close(channel)
        return records

    async def _progress(self, channel: Channel, head: int, limit: int) -> int:
        """Return HEAD, once it has advanced."""

        async def moved() -> int:
            while (now := (await self.read("HEAD", channel))["value"]) == head:
                await ClockCycles(self.dut.clk, 20)
            return now

        try:
            return await with_timeout(cocotb.start_soon(moved()), limit * CLOCK_NS, "ns")
        except SimTimeoutError:
            state = await self.read("STATUS", channel), await self.read("ERRORS", channel)
            raise AssertionError(f"{channel.value}: job {head} has no end after {limit} cycles: {state}") from None

    def record(self, job: DmaJob, number: int) -> Completion:
        """Return the record of a job, after a comparison of the record and of memory with the expected ones."""
        found = Completion.unpack(self.memory.get(job.descriptor.completion, COMPLETION_BYTES))
        assert found.done == 1, f"{job.name}: no record"
        assert (found.job, found.tag) == (number, job.descriptor.tag), f"{job.name}: the record of another job"
        assert set(found.names) == set(job.errors), f"{job.name}: errors {found.names}, not {set(job.errors)}"
        assert set(found.unit_names) == set(job.unit_errors), f"{job.name}: {found.unit_names}, not {set(job.unit_errors)}"
        assert found.bytes == job.size, f"{job.name}: {found.bytes} bytes, not {job.size}"
        got = self.memory.get(job.place, len(job.result))
        differs = [place for place, (one, other) in enumerate(zip(got, job.result, strict=True)) if one != other]
        assert not differs, f"{job.name}: {len(differs)} of {len(got)} bytes differ, first at {differs[0]}"
        self.cases += 1
        return found

    def refused(self, job: DmaJob, error: str, **changed: Any) -> DmaJob:
        """Return a job that the engine refuses because of the fields ``changed`` of its descriptor: nothing is written."""
        untouched = bytes([_FILLING]) * len(job.result)
        return replace(
            job,
            name=f"{job.name} with {changed}",
            descriptor=replace(job.descriptor, **changed),
            result=untouched,
            size=0,
            errors=frozenset({error}),
        )


def restored(x: Tensor, item: Exchange) -> Tensor:
    """Return the tensor that replaces ``x`` after decompression."""
    view = MatrixView.of(tuple(x.shape), item.decompression.mode)
    return tensor_from_beats(item.restored, view, tuple(x.shape))


def bare_exchange(job: Job, payload: Tensor) -> Exchange:
    """Return a job and its payload, uint8 (n,), without beats, which are not needed."""
    nothing = torch.zeros(0)
    return Exchange(job.mode.label, job, job, nothing, bytes(payload.tolist()), nothing)
