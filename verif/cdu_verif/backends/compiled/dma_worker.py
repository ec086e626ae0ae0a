"""Compiled unit behind its DMA engine with a memory of its own, used through ordinary functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from actcodec.backends.job import Job, padded_view
from cdu_driver import DriverError, JobLostError, open_ring, run
from cdu_spec.bitstream import SHIFT_TABLE_BYTES, pack_shifts
from cdu_spec.coding import coder_of
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
from cdu_spec.modes import Coder, Mode
from cdu_spec.register_types import REGISTER_BITS, Channel

from cdu_verif.backends.compiled import library
from cdu_verif.backends.compiled.device import PATIENCE, HangError
from cdu_verif.backends.compiled.unit import CompiledUnit
from cdu_verif.simulation.driver_jobs import scales_in_memory, settings_parts

#: Address of the memory as the unit sees it: above 32 bits.
_BASE = 0x12_3400_0000
#: Alignment of everything in memory, which descriptors need.
_ALIGN = DESCRIPTOR_BYTES
#: Bits of ``unit_errors`` that do not make a job fail.
_HARMLESS = {"nonfinite"}

_Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Took:
    """Cost of a job.

    Parameters
    ----------
    channel, mode
        Direction and mode of the job.
    values, payload_bytes
        Values of its tensor, without padding, and bytes of its payload.
    cycles
        Cycles in the record: from START to the last byte in memory.
    waited
        Cycles from the write of TAIL to the interrupt, which includes fetching the descriptor and writing the record.
    shape
        Shape of the tensor.
    addresses
        Addresses of tensor, payload and scales.
    coder
        Coder of the blocks in mode jpeg-act.
    """

    channel: Channel
    mode: Mode
    values: int
    payload_bytes: int
    cycles: int
    waited: int
    shape: tuple[int, ...]
    addresses: tuple[int, int, int]
    coder: Coder


class _Registers:
    """Registers of a compiled unit, in the form that the driver needs."""

    def __init__(self, unit: CompiledUnit) -> None:
        self._unit = unit

    async def read(self, address: int) -> int:
        """Return the register at a byte address."""
        return self._unit.read(address)

    async def write(self, address: int, value: int) -> None:
        """Write the register at a byte address."""
        self._unit.write(address, value)


class DmaWorker:
    """Run one job at a time on one unit: a descriptor in a ring of one place, a doorbell, an interrupt, a record.

    Parameters
    ----------
    config
        Configuration of the unit, with ``dma_bits``; the unit is compiled if it is not in the cache.
    latency
        Additional cycles that memory takes to answer.
    notify
        Receives the cost of every job.
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
        """Return the payload of a tensor of a shape, whose bytes are in row-major order."""
        view = padded_view(job)
        room = view.payload_bounds(job.dtype, job.how)[1]
        record, payload = self._run(Channel.COMPRESS, job, shape, values, room)
        return payload[: record.bytes].copy()

    def decompress(self, job: Job, payload: _Bytes, shape: Sequence[int]) -> _Bytes:
        """Return the bytes of the tensor of a payload, in row-major order."""
        return self._run(Channel.DECOMPRESS, job, shape, payload, payload.nbytes)[1].copy()

    def _run(
        self, channel: Channel, job: Job, shape: Sequence[int], data: _Bytes, payload_bytes: int
    ) -> tuple[Completion, _Bytes]:
        """Return the record of a job, and the bytes that it wrote."""
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
            tag=self._tail[channel],
        )
        descriptor = replace(descriptor, **settings_parts(job))
        self._memory[places["descriptor"]] = np.frombuffer(descriptor.pack(), np.uint8)
        self._memory[places["completion"]] = 0
        self._memory[places["scales"]] = scales
        self._memory[places[given]] = data
        # More than any job needs: one word per access to memory.
        waited = self._ring(channel, PATIENCE + (1 + self._latency) * end)
        record = Completion.unpack(self._memory[places["completion"]])
        self._check(job, record, descriptor.tag)
        packed = record.bytes if channel is Channel.COMPRESS else payload_bytes
        addresses = descriptor.tensor, descriptor.payload, descriptor.scales
        took = Took(channel, job.mode, values, packed, record.cycles, waited, tuple(shape), addresses, coder_of(job.how))
        self._notify(took)
        return record, self._memory[places[taken]]

    def _ring(self, channel: Channel, most: int) -> int:
        """Let the engine process the descriptor in memory and return the cycles until the interrupt.

        Raises HangError after ``most`` cycles.
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
        """Raise DriverError for a job that failed: JobLostError if the unit says why."""
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
    """Return slices of memory of the given sizes, one behind the other with alignment, and the end of the last one."""
    found, end = {}, 0
    for name, size in sizes.items():
        found[name] = slice(end, end + size)
        end = -(-(end + size) // _ALIGN) * _ALIGN
    return found, end
