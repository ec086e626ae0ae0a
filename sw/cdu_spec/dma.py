"""Interface between a driver and the DMA engine of a unit: descriptors, completion records, registers.

The RTL, the page docs/user/dma.md, the C header, the driver and the tests are all made from the tables in this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any

from cdu_spec.bitstream import SHIFT_TABLE_BYTES
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import DMA_WORDS
from cdu_spec.geometry import TILE_COLUMNS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_spec.register_types import BLOCK_BYTES, REGISTER_BITS, REGISTER_BYTES, Access, Channel, Field, Register
from cdu_spec.registers import register

#: Bits of an address in memory, and of the length of a packet.
MEMORY_ADDRESS_BITS = 40
SIZE_BITS = 32
#: The engine's registers follow those of the unit.
DMA_BASE = BLOCK_BYTES * (1 + len(Channel))
#: Bytes of the address space of each direction.
DMA_CHANNEL_BYTES = BLOCK_BYTES // 2
#: Latency of memory where none is given, in cycles beyond the least.
MEMORY_LATENCY = 40
#: Bytes of scales that a direction may have requested, and words of them at least.
_SCALE_BYTES, _SCALE_WORDS = 128, 4
#: Binary logarithm of the places in the largest ring.
MAX_RING_LOG2 = 16


@dataclass(frozen=True)
class Part:
    """A number of ``size`` bytes in a record, little endian, ``offset`` bytes from its beginning."""

    name: str
    offset: int
    size: int
    description: str


def _parts(*named: tuple[str, int, str]) -> tuple[Part, ...]:
    """Return parts in sequence; parts without a name are only skipped."""
    found, offset = [], 0
    for name, size, description in named:
        if name:
            found.append(Part(name, offset, size, description))
        offset += size
    return tuple(found)


#: A descriptor: one job.
DESCRIPTOR = _parts(
    ("mode", 1, "mode of the payload, the numbers of register MODE"),
    ("value_format", 1, "format of the values: that of the unit"),
    ("coder", 1, "of jpeg-act, as in register CODING; else 0"),
    ("point", 1, "reconstruction point, as in register CODING; else 0"),
    ("tag", 4, "any number: it comes back in the completion record"),
    ("n", 4, "samples, 1 or more"),
    ("c", 4, "channels, 1 or more; each has a scale, but all together one in actnn"),
    ("h", 4, "rows of a channel, 1 or more"),
    ("w", 4, "values of a row, 1 or more; they lie side by side"),
    ("tensor", 8, "address of the first value"),
    ("stride_n", 8, "bytes from one sample to the next, modulo 2\\*\\*40"),
    ("stride_c", 8, "bytes from one channel to the next, modulo 2\\*\\*40"),
    ("stride_h", 8, "bytes from one row to the next, modulo 2\\*\\*40"),
    ("scales", 8, "address of the scales: multipliers when compressing, reciprocals when decompressing"),
    ("payload", 8, "address of the payload"),
    ("payload_bytes", 4, "compressing: room for the payload; decompressing: its length, 1 or more; with its CRC if it has one"),
    ("payload_crc", 1, "1: behind the payload stands its CRC-32, as with register PAYLOAD_CRC; else 0"),
    ("mx_coding", 1, "of mode mx, as register MX_CODING; else 0"),
    ("quantizer", 2, "of an affine mode, as register QUANTIZER; else 0"),
    ("completion", 8, "address of the completion record"),
    ("shifts", SHIFT_TABLE_BYTES, "shift table of jpeg-act, as in [the bitstream](../reference/bitstream.md)"),
    ("seed", 4, "compressing in an affine mode, as register SEED; else any number"),
)
#: Bytes from one descriptor to the next.
DESCRIPTOR_BYTES = 128

#: A completion record: the outcome of a job. The last part is written after memory has acknowledged all others.
COMPLETION = _parts(
    ("job", 4, "number of the descriptor: 0 after CONTROL.enable, one more for each, modulo 2\\*\\*32"),
    ("tag", 4, "that of the descriptor"),
    ("errors", 4, "bits, see below; 0: all is well"),
    ("unit_errors", 4, "what the job set in register ERRORS of the unit"),
    ("cycles", 4, "from the START of the job, or the end of the one before it, to its last byte in memory"),
    ("bytes", 4, "bytes of the packet that the unit gave: the payload, or the values with their padding"),
    ("", 4, ""),
    ("done", 4, "1"),
)
COMPLETION_BYTES = 32

#: Bits of ``errors`` of a completion record.
DMA_ERRORS = (
    (
        "bad_mode",
        "mode, number format, coder, reconstruction point, quantiser, coding of mx or CRC are not of this unit or mode",
    ),
    ("bad_shape", "an extent is 0, or the tensor has more values than a job can have"),
    (
        "bad_address",
        f"an address has more than {MEMORY_ADDRESS_BITS} bits, or the payload or the scales end beyond the last one",
    ),
    ("bad_length", "a payload to decompress has no bytes besides its CRC"),
    ("overflow", "the payload is longer than its room: what fits is there, and the record says how much is needed"),
    ("read", "memory answered a read of the tensor, the payload or the scales with an error"),
    ("write", "memory answered a write of the tensor or the payload with an error"),
    ("unit", "the unit set a bit of its ERRORS"),
)
#: Errors among these with which the job was not run.
DMA_REFUSALS = ("bad_mode", "bad_shape", "bad_address", "bad_length")


def _flags(*named: tuple[str, str]) -> tuple[Field, ...]:
    return tuple(Field(name, place, 1, description) for place, (name, description) in enumerate(named))


def _number(width: int, description: str) -> tuple[Field, ...]:
    return (Field("value", 0, width, description),)


_INTERRUPTS = (("job_done", "a completion record was written, or could not be"), ("error", "a bit of ERRORS was set"))

#: Bits of ERRORS with which the engine halts: no descriptor is fetched until the host has cleared them.
DMA_HALTS = ("tail", "ring", "owned")
#: Registers that describe a ring; they may be written only while it does not run.
RING_REGISTERS = ("RING_LOW", "RING_HIGH", "RING_SIZE", "ATTRIBUTES")
_OF_A_RING = f"{', '.join(RING_REGISTERS[:-1])} or {RING_REGISTERS[-1]}"

#: Registers of each direction of the engine.
DMA_CHANNEL = (
    Register(
        "CONTROL",
        0x00,
        Access.RW,
        "Runs the ring.",
        _flags(("enable", "1: descriptors are fetched; 0: those that were fetched are done, then HEAD becomes 0")),
    ),
    Register(
        "STATUS", 0x04, Access.RO, "State of the ring.", _flags(("busy", "a descriptor was fetched and has no record yet"))
    ),
    Register(
        "ERRORS",
        0x08,
        Access.W1C,
        "What no record tells.",
        _flags(
            ("descriptor", "memory answered the read of a descriptor with an error: it was passed over"),
            ("completion", "a completion record could not be written: it is not within the addresses, or memory refused it"),
            (
                "tail",
                "TAIL, while the ring ran, was more than the number of places ahead of HEAD, or behind a descriptor that was "
                "fetched",
            ),
            (
                "ring",
                f"a write to {_OF_A_RING} of a number that it does not take was refused, or the next "
                f"descriptor would lie beyond 2\\*\\*{MEMORY_ADDRESS_BITS}",
            ),
            (
                "owned",
                f"a write was refused: to {_OF_A_RING} while CONTROL.enable or STATUS.busy was 1, or to a "
                "register of this direction of the unit, which only the engine writes",
            ),
        ),
    ),
    Register("INTERRUPT_STATUS", 0x0C, Access.W1C, "Reasons to interrupt.", _flags(*_INTERRUPTS)),
    Register(
        "INTERRUPT_ENABLE",
        0x10,
        Access.RW,
        "Reasons that reach the interrupt line.",
        _flags(*((name, f"INTERRUPT_STATUS.{name}") for name, _ in _INTERRUPTS)),
    ),
    Register(
        "RING_LOW",
        0x14,
        Access.RW,
        "Address of the ring, low half.",
        (Field("address", 7, REGISTER_BITS - 7, f"the ring begins at a multiple of {DESCRIPTOR_BYTES}"),),
    ),
    Register(
        "RING_HIGH",
        0x18,
        Access.RW,
        "Address of the ring, high half.",
        (Field("address", 0, MEMORY_ADDRESS_BITS - REGISTER_BITS, "the bits above those of RING_LOW"),),
    ),
    Register(
        "RING_SIZE",
        0x1C,
        Access.RW,
        "Places of the ring.",
        (Field("log2", 0, MAX_RING_LOG2.bit_length(), "binary logarithm of the number of places", highest=MAX_RING_LOG2),),
    ),
    Register(
        "TAIL",
        0x20,
        Access.RW,
        "Doorbell.",
        _number(REGISTER_BITS, "number of the descriptor behind the last one that is there, modulo 2\\*\\*32"),
    ),
    Register(
        "HEAD",
        0x24,
        Access.RO,
        "How far the ring is done.",
        _number(REGISTER_BITS, "descriptors that have a record, modulo 2\\*\\*32"),
    ),
    Register(
        "ATTRIBUTES",
        0x28,
        Access.RW,
        "Signals of every access of this direction to memory.",
        (
            Field("cache", 0, 4, "AxCACHE; its two upper bits, to allocate, are 0 where bit 1, modifiable, is 0", reset=0b0011),
            Field("prot", 4, 3, "AxPROT"),
            Field("qos", 8, 4, "AxQOS"),
            Field("user", 16, 16, "AxUSER"),
        ),
    ),
)


def dma_register(name: str) -> Register:
    """Return a register of the engine by name."""
    return next(entry for entry in DMA_CHANNEL if entry.name == name)


def dma_base(channel: Channel) -> int:
    """Return the address of the first register of a direction of the engine."""
    return DMA_BASE + DMA_CHANNEL_BYTES * list(Channel).index(channel)


def dma_address(name: str, channel: Channel) -> int:
    """Return the address of a register of the engine."""
    return dma_base(channel) + dma_register(name).offset


def part(table: Sequence[Part], name: str) -> Part:
    """Return a part of a record by name."""
    return next(entry for entry in table if entry.name == name)


def _pack(table: Sequence[Part], size: int, values: Mapping[str, int | bytes]) -> bytes:
    record = bytearray(size)
    for entry in table:
        value = values[entry.name]
        raw = value if isinstance(value, bytes) else (value % (1 << 8 * entry.size)).to_bytes(entry.size, "little")
        record[entry.offset : entry.offset + entry.size] = raw
    return bytes(record)


@dataclass(frozen=True)
class Descriptor:
    """One job of the engine; the fields are the parts of :data:`DESCRIPTOR`. They are checked by the engine only."""

    mode: int
    value_format: int
    n: int
    c: int
    h: int
    w: int
    tensor: int
    stride_n: int
    stride_c: int
    stride_h: int
    payload: int
    payload_bytes: int
    completion: int
    scales: int = 0
    shifts: bytes = bytes(SHIFT_TABLE_BYTES)
    coder: int = 0
    point: int = 0
    payload_crc: int = 0
    mx_coding: int = 0
    quantizer: int = 0
    seed: int = 0
    tag: int = 0

    def pack(self) -> bytes:
        """Return the 128 bytes in memory."""
        return _pack(DESCRIPTOR, DESCRIPTOR_BYTES, {entry.name: getattr(self, entry.name) for entry in DESCRIPTOR})


@dataclass(frozen=True)
class Completion:
    """The outcome of a job; the fields are the parts of :data:`COMPLETION`."""

    job: int
    tag: int
    errors: int
    unit_errors: int
    cycles: int
    bytes: int
    done: int

    @classmethod
    def unpack(cls, record: Any) -> Completion:
        """Read a record from its 32 bytes."""
        raw = bytes(record)
        values = {entry.name: raw[entry.offset : entry.offset + entry.size] for entry in COMPLETION}
        return cls(**{field.name: int.from_bytes(values[field.name], "little") for field in fields(cls)})

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bits of ``errors`` that are set."""
        return tuple(name for place, (name, _) in enumerate(DMA_ERRORS) if self.errors >> place & 1)

    @property
    def unit_names(self) -> tuple[str, ...]:
        """Names of the bits of ``unit_errors`` that are set."""
        return tuple(name for name, bit in register("ERRORS").unpack(self.unit_errors).items() if bit)


def tensor_extents(shape: Sequence[int], mode: Mode) -> tuple[int, int, int, int]:
    """Return ``n``, ``c``, ``h`` and ``w`` of a descriptor of a tensor in row-major order.

    Maps are folded into rows if the mode allows it, because long rows are read at a higher rate. ValueError for a shape that
    the mode does not take.
    """
    view = MatrixView.of(shape, mode)
    if mode.is_flat:
        return 1, 1, 1, prod(shape)
    if mode.in_tiles:
        n, c, h, w = shape
        return n, c, h, w
    return view.rows // view.channels, view.channels, 1, view.columns


def read_words(config: CduConfig) -> int:
    """Return the words of a tensor or a payload that a direction of the engine may have requested from memory."""
    return config.dma_words or min(DMA_WORDS)


def scale_words(config: CduConfig) -> int:
    """Return the words of scales that a direction of the engine may have requested from memory."""
    return max(_SCALE_WORDS, 8 * _SCALE_BYTES // config.dma_bits)


def _burst_words(config: CduConfig, most: int) -> int:
    """Return the words of a burst of a tensor, at most ``most``: rows of tiles are the shortest."""
    row = TILE_COLUMNS * config.dtype.bits // config.dma_bits
    return min(most, max(1, row)) if config.has_tiles else most


def read_bursts(config: CduConfig) -> int:
    """Return the bursts of a tensor that the engine may have requested, enough for as many words as :func:`read_words`."""
    return read_words(config) // _burst_words(config, 4)


def unanswered_bursts(config: CduConfig) -> int:
    """Return the bursts that a direction of the engine may have written without an answer from memory."""
    return read_words(config) // _burst_words(config, 2) - 1


def row_major_strides(extents: Sequence[int], value_bytes: int) -> dict[str, int]:
    """Return the strides of a descriptor of a tensor in row-major order, by name."""
    _, c, h, w = extents
    return {"stride_n": c * h * w * value_bytes, "stride_c": h * w * value_bytes, "stride_h": w * value_bytes}


def dma_entries() -> list[dict[str, Any]]:
    """Return every register of the engine with its address, in the form of :func:`cdu_spec.registers.entries`."""
    return [
        {
            "name": entry.name,
            "block": f"dma_{channel.value}",
            "address": dma_address(entry.name, channel),
            "count": entry.count,
            "access": entry.access.value,
            "reset": entry.reset,
            "fields": [{"name": field.name, "offset": field.low, "width": field.width} for field in entry.fields],
            "description": entry.description,
        }
        for channel in Channel
        for entry in DMA_CHANNEL
    ]


assert max(entry.offset + entry.size for entry in DESCRIPTOR) <= DESCRIPTOR_BYTES
assert max(entry.offset + entry.size for entry in COMPLETION) == COMPLETION_BYTES
assert max(entry.offset for entry in DMA_CHANNEL) + REGISTER_BYTES <= DMA_CHANNEL_BYTES
