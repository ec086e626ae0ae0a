"""Tasks of the system's program in memory: inputs and results, as laid out for Python and C."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, fields
from random import Random

from actcodec.backends.job import DTYPES, tensor_from_beats
from cdu_spec.bitstream import SHIFT_TABLE_BYTES, pack_shifts
from cdu_spec.config import CduConfig
from cdu_spec.dma import row_major_strides, tensor_extents
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_tools.errors import UserError
from cdu_verif.content.payloads import float_bytes
from cdu_verif.content.tensors import Exchange, of_tensor
from cdu_verif.simulation.driver_jobs import scales_in_memory, settings_parts
from torch import Tensor

from cdu_soc.interconnect import EXIT, REGISTERS

#: Address of the tasks; the program is below.
TASKS = 0x8000
#: Exit code of the program when the processor traps.
TRAPPED = 99
#: Fields of a task, numbers of 32 bits. The first ones are inputs, the others results.
GIVEN = (
    *("mode", "value_format", "coder", "point", "quantizer", "seed", "mx_coding"),
    *("n", "c", "h", "w", "stride_n", "stride_c", "stride_h"),
    *("tensor", "multipliers", "reciprocals", "payload", "room", "restored"),
)
FOUND = (
    *("compressed", "payload_bytes", "compress_cycles", "refused", "errors", "unit_errors"),
    *("decompressed", "decompress_cycles", "interrupts"),
)
_TASK = struct.Struct(f"<{len(GIVEN)}I{SHIFT_TABLE_BYTES}s{len(FOUND)}I")
_ALIGN = 8
#: Content of unused memory, and the number of bytes checked behind a result.
_FILLING, _BEHIND = b"\xa5", 64


@dataclass(frozen=True)
class FoundTask:
    """Results of a task, as the program left them.

    Parameters
    ----------
    compressed, decompressed
        1: the driver reported success.
    payload_bytes, compress_cycles, decompress_cycles
        Values from the records.
    refused, errors, unit_errors
        Results of the damaged payload. 1: the driver reported that the job failed; the errors in its record.
    interrupts
        Number of interrupts that the processor has taken so far.
    """

    compressed: int
    payload_bytes: int
    compress_cycles: int
    refused: int
    errors: int
    unit_errors: int
    decompressed: int
    decompress_cycles: int
    interrupts: int


@dataclass(frozen=True)
class Task:
    """A tensor in a mode, with the golden model's results."""

    name: str
    mode: Mode
    values: Tensor
    item: Exchange

    @classmethod
    def of(cls, config: CduConfig, name: str, values: Tensor, mode: Mode, seed: int = 1) -> Task:
        """Return the task of a tensor, with random scales and table."""
        values = values.to(DTYPES[config.dtype])
        return cls(name, mode, values, of_tensor(config, Random(seed), values, mode))

    @property
    def label(self) -> str:
        """Return tensor and mode as text."""
        return f"{self.name} in {self.mode.label}"

    @property
    def restored(self) -> bytes:
        """Return the golden values after decompression."""
        view = MatrixView.of(tuple(self.values.shape), self.mode)
        return float_bytes(tensor_from_beats(self.item.restored, view, tuple(self.values.shape)).contiguous())


@dataclass(frozen=True)
class PlacedTask:
    """A task in memory, with the addresses of its results."""

    task: Task
    payload: int
    restored: int


class Memory:
    """Content of memory, in which tasks are placed one behind the other."""

    def __init__(self, program: bytes, size: int) -> None:
        if len(program) > TASKS:
            raise UserError(f"the program has {len(program)} bytes: {TASKS} are allowed")
        self._next = TASKS
        self.content = bytearray(_FILLING * size)
        self.content[:TASKS] = program.ljust(TASKS, b"\0")

    def put_tasks(self, tasks: Sequence[Task]) -> list[PlacedTask]:
        """Put tasks behind the program; UserError if they do not fit."""
        self._next = TASKS + _TASK.size * len(tasks) + _ALIGN
        placed = []
        for number, task in enumerate(tasks):
            place, raw = self._put(task)
            self._write(TASKS + number * _TASK.size, raw)
            placed.append(place)
        self._write(TASKS + len(tasks) * _TASK.size, bytes(4))  # a task of mode 0 ends the list
        return placed

    def _put(self, task: Task) -> tuple[PlacedTask, bytes]:
        item, job = task.item, task.item.compression
        extents = tensor_extents(tuple(task.values.shape), task.mode)
        strides = row_major_strides(extents, task.values.element_size())
        golden = task.restored
        given = dict(zip("nchw", extents, strict=True)) | strides
        given |= {"mode": int(task.mode), "value_format": int(job.dtype), "room": len(item.payload)}
        given |= settings_parts(job)
        given |= {"point": settings_parts(item.decompression)["point"]}
        given |= {
            "tensor": self._add(float_bytes(task.values.contiguous())),
            "multipliers": self._add(scales_in_memory(item.compression, extents[1])),
            "reciprocals": self._add(scales_in_memory(item.decompression, extents[1])),
            "payload": self._add(_FILLING * (len(item.payload) + _BEHIND)),
            "restored": self._add(_FILLING * (len(golden) + _BEHIND)),
        }
        shifts = pack_shifts(job.shifts) if job.shifts else bytes(SHIFT_TABLE_BYTES)
        raw = _TASK.pack(*(given[name] for name in GIVEN), shifts, *(0 for _ in FOUND))
        return PlacedTask(task, given["payload"], given["restored"]), raw

    def _add(self, content: bytes) -> int:
        begin = self._next
        self._next += -(-len(content) // _ALIGN) * _ALIGN
        if self._next > len(self.content):
            raise UserError(f"the tensors need more than the {len(self.content)} bytes of memory: use fewer or smaller ones")
        self._write(begin, content)
        return begin

    def _write(self, begin: int, content: bytes) -> None:
        self.content[begin : begin + len(content)] = content


def found(memory: bytes, number: int) -> FoundTask:
    """Return the results of a task, as the program left them."""
    values = _TASK.unpack_from(memory, TASKS + number * _TASK.size)
    return FoundTask(*values[len(GIVEN) + 1 :])


def differences(memory: bytes, placed: PlacedTask) -> list[str]:
    """Return the differences of memory from the golden model, none if it is right; bytes behind the results are checked too."""
    told = []
    for what, begin, golden in (
        ("payload", placed.payload, placed.task.item.payload),
        ("values", placed.restored, placed.task.restored),
    ):
        wanted = golden + _FILLING * _BEHIND
        got = memory[begin : begin + len(wanted)]
        wrong = [place for place, (one, other) in enumerate(zip(got, wanted, strict=True)) if one != other]
        if wrong:
            told.append(f"{placed.task.label}: {len(wrong)} of {len(golden)} bytes of the {what} differ, first at {wrong[0]}")
    return told


def c_header() -> str:
    """Return tasks.h, which gives the program the addresses and fields of tasks."""
    assert tuple(field.name for field in fields(FoundTask)) == FOUND
    members = [
        *(f"uint32_t {name};" for name in GIVEN),
        f"uint8_t shifts[{SHIFT_TABLE_BYTES}];",
        *(f"uint32_t {name};" for name in FOUND),
    ]
    places = [f"#define {name} {value:#x}u" for name, value in (("TASKS", TASKS), ("REGISTERS", REGISTERS))]
    body = "".join(f"    {member}\n" for member in members)
    return "\n".join([*places, f"struct task {{\n{body}}};", ""])


def symbols() -> dict[str, int]:
    """Return numbers that the assembler and the linker need."""
    return {"TASKS": TASKS, "EXIT": EXIT, "TRAPPED": TRAPPED}
