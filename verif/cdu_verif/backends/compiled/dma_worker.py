"""A compiled unit behind its DMA engine with a memory of its own, in ordinary functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from actcodec.backends.job import Job, padded_view
from cdu_driver import DriverError, JobLostError, open_ring, run
from cdu_spec.bitstream import SHIFT_TABLE_BYTES, Mode, pack_shifts
from cdu_spec.config import CduConfig
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
from cdu_spec.registers import REGISTER_BITS, Channel

from cdu_verif.backends.compiled import library
from cdu_verif.backends.compiled.device import PATIENCE, HangError
from cdu_verif.backends.compiled.unit import CompiledUnit
from cdu_verif.simulation.driver_jobs import scales_in_memory, settings_parts

#: Where the unit sees its memory: above 32 bits.
_BASE = 0x12_3400_0000
#: What an address of anything in memory is a multiple of; a descriptor's has to be one.
_ALIGN = DESCRIPTOR_BYTES
#: Bits of ``unit_errors`` with which a job has all the same been done.
_HARMLESS = {"nonfinite"}

_Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Took:
    """What a job took.

    Parameters
    ----------
    channel, mode
        Which job it was.
    values, payload_bytes
        Of its tensor, without padding, and of its payload.
    cycles
        As the record says: from START to the last byte in memory.
    waited
        From the write of TAIL to the interrupt, so with fetching the descriptor and writing the record.
    """

    channel: Channel
    mode: Mode
    values: int
    payload_bytes: int
    cycles: int
    waited: int


class _Registers:
    """Registers of a compiled unit, as the driver wants them."""

    def __init__(self, unit: CompiledUnit) -> None:
        self._unit = unit

    async def read(self, address: int) -> int:
        """The register at a byte address."""
        return self._unit.read(address)

    async def write(self, address: int, value: int) -> None:
        """Write the register at a byte address."""
        self._unit.write(address, value)


class DmaWorker:
    """One unit that does one job at a time: a descriptor in a ring of one place, a doorbell, an interrupt, a record.

    Parameters
    ----------
    config
        Configuration of the unit, with ``dma_bits``; it is compiled when it is not in the cache.
    latency
        Cycles that memory takes to answer beyond the least.
    notify
        Is told of every job that was done.
    """

    def __init__(self, config: CduConfig, latency: int, notify: Callable[[Took], None]) -> None:
        design = library.generated(config)
        self.unit = CompiledUnit(library.library(design), design.streams)
        self._notify = notify
        self._value_bytes, self._latency = config.dtype.bits // 8, latency
        self._memory: _Bytes = np.zeros(0, np.uint8)
        self._tail = dict.fromkeys(Channel, 0)
        for channel in Channel:
            run(open_ring(_Registers(self.unit), channel, _BASE, log2=0))

    def compress(self, job: Job, values: _Bytes, shape: Sequence[int]) -> _Bytes:
        """The payload of a tensor of a shape, whose bytes lie in row-major order."""
        view = padded_view(job)
        room = view.payload_bounds(job.dtype, job.settings, job.coder, job.mx)[1]
        record, payload = self._run(Channel.COMPRESS, job, shape, values, room)
        return payload[: record.bytes].copy()

    def decompress(self, job: Job, payload: _Bytes, shape: Sequence[int]) -> _Bytes:
        """The bytes of the tensor of a payload, in row-major order."""
        return self._run(Channel.DECOMPRESS, job, shape, payload, payload.nbytes)[1].copy()

    def _run(
        self, channel: Channel, job: Job, shape: Sequence[int], data: _Bytes, payload_bytes: int
    ) -> tuple[Completion, _Bytes]:
        """The record of a job, and what it wrote."""
        extents = tensor_extents(shape, job.mode)
        scales = np.frombuffer(scales_in_memory(job, extents[1]), np.uint8)
        values = int(np.prod(extents))
        places, end = _places(
            descriptor=DESCRIPTOR_BYTES,
            completion=COMPLETION_BYTES,
            scales=scales.nbytes,
            tensor=values * self._value_bytes,
            payload=payload_bytes,
        )
        if end > self._memory.nbytes:
            self._memory = np.zeros(end, np.uint8)
            self.unit.memory(self._memory, _BASE, self._latency)
        given, taken = ("tensor", "payload") if channel is Channel.COMPRESS else ("payload", "tensor")
        descriptor = Descriptor(
            *(job.mode, job.dtype, *extents, _BASE + places["tensor"].start),
            **row_major_strides(extents, self._value_bytes),
            payload=_BASE + places["payload"].start,
            payload_bytes=payload_bytes,
            completion=_BASE + places["completion"].start,
            scales=_BASE + places["scales"].start,
            shifts=pack_shifts(job.shifts) if job.shifts else bytes(SHIFT_TABLE_BYTES),
            coder=job.coder,
            point=job.point,
            tag=self._tail[channel],
        )
        descriptor = replace(descriptor, **settings_parts(job))
        self._memory[places["descriptor"]] = np.frombuffer(descriptor.pack(), np.uint8)
        self._memory[places["completion"]] = 0
        self._memory[places["scales"]] = scales
        self._memory[places[given]] = data
        # More than any job needs: a word in each of the cycles that memory takes.
        waited = self._ring(channel, PATIENCE + (1 + self._latency) * end)
        record = Completion.unpack(self._memory[places["completion"]])
        self._check(job, record, descriptor.tag)
        packed = record.bytes if channel is Channel.COMPRESS else payload_bytes
        self._notify(Took(channel, job.mode, values, packed, record.cycles, waited))
        return record, self._memory[places[taken]]

    def _ring(self, channel: Channel, most: int) -> int:
        """Give the descriptor that is there to the engine and wait until it is done; the cycles that it took.

        HangError after ``most`` of them.
        """
        begin = self.unit.cycle
        self._tail[channel] = (self._tail[channel] + 1) % (1 << REGISTER_BITS)
        self._write("TAIL", channel, value=self._tail[channel])
        while self.unit.read(dma_address("HEAD", channel)) != self._tail[channel]:
            if not self.unit.interrupt and self.unit.run(most, until_interrupt=True) == most:
                raise HangError(f"{channel.value}: there is no interrupt after {most} cycles: the unit hangs")
            self._write("INTERRUPT_STATUS", channel, job_done=1, error=1)
        return self.unit.cycle - begin

    @staticmethod
    def _check(job: Job, record: Completion, tag: int) -> None:
        """DriverError for a job that was not done: JobLostError when the unit says why."""
        if not record.done or record.tag != tag:
            raise DriverError(f"there is no record of a job of mode {job.mode.label}: the unit is broken")
        harmful = set(record.unit_names) - _HARMLESS
        if harmful:
            raise JobLostError(f"a job of mode {job.mode.label} failed", sorted(harmful))
        if set(record.names) - {"unit"}:
            raise DriverError(f"a job of mode {job.mode.label} failed: {', '.join(record.names)}")

    def _write(self, name: str, channel: Channel, **fields: int) -> None:
        self.unit.write(dma_address(name, channel), dma_register(name).pack(**fields))


def _places(**sizes: int) -> tuple[dict[str, slice], int]:
    """Where things lie in memory, one behind the other, and where the last one ends."""
    found, end = {}, 0
    for name, size in sizes.items():
        found[name] = slice(end, end + size)
        end = -(-(end + size) // _ALIGN) * _ALIGN
    return found, end
