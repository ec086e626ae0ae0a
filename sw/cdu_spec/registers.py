"""The register map: registers of a unit at its AXI4-Lite port.

The RTL, docs/reference/registers.md, the C header, the driver and the tests are all made from the tables in this file.
Registers have 32 bits. After a global block come two channels of the same layout, one per direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any

from cdu_spec.affine import BASE_BITS, CODE_BITS, AffineSettings, RangeKind
from cdu_spec.bitstream import MAGIC
from cdu_spec.config import COMPLETIONS, DUPLEX, CduConfig
from cdu_spec.geometry import BLOCK_VALUES, SHIFT_BITS
from cdu_spec.modes import AFFINE_MODES, Coder, Dtype, Mode
from cdu_spec.mx import MX_FORMATS, MxSettings, ScaleRule
from cdu_spec.reconstruction import MAX_POINT, POINT_BITS
from cdu_spec.rounding import Rounding

#: Bits of an address of a byte, and of a register.
ADDRESS_BITS = 12
REGISTER_BITS = 32
REGISTER_BYTES = REGISTER_BITS // 8
#: Bytes of the address space of each block.
BLOCK_BYTES = 0x400
#: Bits of a job's counts (BEATS, ROW_BEATS, CHANNEL_ROWS): up to 2 GiB of float32.
COUNT_BITS = 26
#: Jobs that wait in a channel, besides those in its data path.
JOB_QUEUE = 2
#: Most jobs that were started and have not ended, per channel.
MAX_JOBS = 31
#: Scales that the queue behind SCALE and SCALE_LAST holds.
SCALE_QUEUE = 4
#: Bits of a job's number in its record.
JOB_NUMBER_BITS = 16
#: Shift tables per channel.
BANKS = 2
#: Version of this map: the major number changes when old drivers stop working.
MAJOR, MINOR = 1, 7

_NIBBLE_BITS = 4
_SHIFTS_PER_REGISTER = REGISTER_BITS // _NIBBLE_BITS
#: Registers of one shift table.
SHIFT_REGISTERS = BLOCK_VALUES // _SHIFTS_PER_REGISTER


class Access(Enum):
    """The effect of reads and writes."""

    RO = "RO"  #: read only; a write is a bad access
    RW = "RW"  #: reads return the written value
    WO = "WO"  #: writes act once; reads give 0
    W1C = "W1C"  #: sticky bits; writing 1 clears a bit, unless it is set anew in the same cycle


class Channel(Enum):
    """A direction of the unit, and its block of registers."""

    COMPRESS = "compress"
    DECOMPRESS = "decompress"

    @property
    def base(self) -> int:
        """Address of the first register."""
        return BLOCK_BYTES * (1 + list(Channel).index(self))


class ScaleSource(IntEnum):
    """Source of a job's scales (MODE.scales)."""

    EITHER = 0  #: whichever comes first; jobs that wait for scales together then all take theirs from the same source
    PORT = 1
    REGISTERS = 2


@dataclass(frozen=True)
class Field:
    """A field of ``width`` bits of a register, from bit ``low``.

    Parameters
    ----------
    name, low, width, description
        Position in the register, and meaning.
    reset
        Number after reset.
    values
        Names of numbers that the field may hold.
    lowest, highest
        Bounds of the accepted numbers, both included; ``highest`` None: the greatest number of its bits.
    at_start
        True if CONTROL.start checks the bounds and refuses the job; otherwise the write is refused.
    signed
        True if the number has a sign: a write may repeat it up to the top of the register.
    """

    name: str
    low: int
    width: int
    description: str
    reset: int = 0
    values: Mapping[str, int] = field(default_factory=dict)
    lowest: int = 0
    highest: int | None = None
    at_start: bool = False
    signed: bool = False

    @property
    def is_flag(self) -> bool:
        """Return whether the field is a flag of one bit."""
        return self.width == 1 and not self.values

    @property
    def is_bounded(self) -> bool:
        """Return whether the bounds exclude numbers of its width."""
        return self.lowest > 0 or self.highest is not None

    @property
    def bounds(self) -> range:
        """The numbers that the field accepts."""
        return range(self.lowest, (1 << self.width if self.highest is None else self.highest + 1))

    @property
    def written(self) -> range:
        """The numbers that may be written."""
        return range(1 << self.width) if self.at_start else self.bounds

    @property
    def mask(self) -> int:
        """The bits of the field in the register."""
        return ((1 << self.width) - 1) << self.low

    def get(self, register: int) -> int:
        """Return the field's value in a register's value."""
        return (register & self.mask) >> self.low


@dataclass(frozen=True)
class Register:
    """One register, or ``count`` equal ones at consecutive addresses.

    ``offset`` counts bytes from the start of the block. ``channels`` names the channels that have the register (ignored in
    the global block). The values of ``configured`` registers depend on the configuration (:func:`read_only_values`). With
    ``modes`` the register exists in units that have at least one of them, with ``coder`` in units that have it, with ``option``
    in those whose parameter of that name is not 0. Bits outside the fields read 0; a write to them is ignored in registers of
    flags, and refused if it would cut off a number (:meth:`takes`).
    """

    name: str
    offset: int
    access: Access
    description: str
    fields: tuple[Field, ...]
    count: int = 1
    channels: tuple[Channel, ...] = tuple(Channel)
    configured: bool = False
    modes: tuple[Mode, ...] = ()
    coder: Coder | None = None
    option: str = ""

    def exists_in(self, config: CduConfig) -> bool:
        """Return whether a unit of this configuration has the register."""
        if self.coder is not None and self.coder not in config.built_coders:
            return False
        if self.option and not getattr(config, self.option):
            return False
        return not self.modes or not set(self.modes).isdisjoint(config.built_modes)

    @property
    def is_number(self) -> bool:
        """Return whether the register is one number of all its bits."""
        return self.fields[0].width == REGISTER_BITS

    @property
    def is_exact(self) -> bool:
        """Return whether a write of 1 outside the fields is refused: the register holds numbers, which would be cut off."""
        return self.access is Access.RW and not all(part.is_flag for part in self.fields)

    def takes(self, value: int) -> bool:
        """Return whether a write of the whole register is carried out, where it is writable; else the answer is SLVERR."""
        fields = sum(part.mask for part in self.fields)
        # A sign that is repeated up to the top is no other number
        for part in self.fields:
            signs = (1 << REGISTER_BITS) - (1 << part.low + part.width - 1)
            if part.signed and value & signs == signs:
                value &= fields
        if self.is_exact and value & ~fields:
            return False
        return all(part.get(value) in part.written for part in self.fields)

    @property
    def reset(self) -> int:
        """Value after reset."""
        return sum(part.reset << part.low for part in self.fields)

    def field(self, name: str) -> Field:
        """Return a field by name."""
        return next(part for part in self.fields if part.name == name)

    def pack(self, **values: int) -> int:
        """Return the register's value with these fields, and zeros elsewhere.

        Raises KeyError for an unknown field and ValueError for a number that must not be written.
        """
        known = {part.name: part for part in self.fields}
        result = 0
        for name, value in values.items():
            numbers = known[name].written
            if value not in numbers:
                raise ValueError(f"{self.name}.{name} = {value} is not allowed: use {numbers.start} to {numbers.stop - 1}")
            result |= value << known[name].low
        return result

    def unpack(self, value: int) -> dict[str, int]:
        """Return all fields of a value."""
        return {part.name: part.get(value) for part in self.fields}


def _number(width: int, description: str, reset: int = 0) -> tuple[Field, ...]:
    """Return the fields of a register that is one number."""
    return (Field("value", 0, width, description, reset),)


def _count(description: str) -> tuple[Field, ...]:
    """Return the fields of a register that is a count of a job."""
    return (Field("value", 0, REGISTER_BITS, description, lowest=1, highest=(1 << COUNT_BITS) - 1, at_start=True),)


def _flags(*named: tuple[str, str], reset: int = 0) -> tuple[Field, ...]:
    """Return single bits from bit 0."""
    return tuple(Field(name, place, 1, description, reset) for place, (name, description) in enumerate(named))


#: Errors of a channel. The driver's exceptions and the documents use these sentences.
ERROR_FLAGS = (
    ("early_last", "the input of a job was too short; zeros replaced the rest"),
    ("late_last", "the input of a job was too long; the rest up to TLAST was thrown away"),
    ("keep", "a TKEEP had holes, or ended inside a row of 8 values or a scale"),
    (
        "bad_job",
        f"START was refused: mode unknown or not built, a count of 0 or of more than {COUNT_BITS} bits, BEATS not whole blocks "
        "(strips), or QUANTIZER, CODING, MX_CODING or MODE.scales impossible",
    ),
    ("bad_length", "START was refused: no payload of this job can have PAYLOAD_BYTES bytes"),
    ("queue_full", "START was refused: STATUS.queue_space was 0"),
    ("busy_write", "a write to a shift table was ignored: a job that has not ended uses it"),
    (
        "nonfinite",
        "an input value was infinite (it became the largest number) or NaN (it became 0; in mode mx its block is NaN)",
    ),
    ("scale_missing", "a job had fewer scales than channels; 1.0 replaced the rest"),
    ("scale_surplus", "a job had more scales than channels; the rest was thrown away"),
    ("scale_overflow", "a write to SCALE or SCALE_LAST was ignored: STATUS.scale_space was 0"),
    ("timeout", "no transfer for WATCHDOG cycles while a job was under way; all jobs were aborted"),
    ("aborted", "CONTROL.abort was written while jobs were under way, or together with start; they were forgotten"),
    (
        "bad_scale",
        "a scale was not a positive number in the range that bitstream.md gives for the mode, or had more significand bits "
        "than NUMBERS says; 1.0 took its place",
    ),
    (
        "scale_source",
        "of jobs that wait for scales together only some name their source in MODE, or none does and scales came from both: "
        "they may be in the wrong order",
    ),
    ("bad_head", "a block began with a range that no encoder writes; its values are wrong"),
    ("payload_length", "the payload had another number of bytes than PAYLOAD_BYTES"),
    ("bad_crc", "the four bytes behind a payload were not its CRC-32, or not there"),
)

#: Errors that belong to a single job, named in its record.
JOB_ERRORS = (
    "early_last",
    "late_last",
    "keep",
    "nonfinite",
    "scale_missing",
    "scale_surplus",
    "bad_scale",
    "scale_source",
    "bad_head",
    "payload_length",
    "bad_crc",
)

_MODES = {mode.label: int(mode) for mode in Mode}
_INTERRUPTS = (("job_done", "a job has ended"), ("error", "an error that ERROR_ENABLE lets through has happened"))

GLOBAL = (
    Register("ID", 0x00, Access.RO, "Identification.", _number(32, "the bytes 'CDU', 1A", int.from_bytes(MAGIC, "little"))),
    Register(
        "VERSION",
        0x04,
        Access.RO,
        "Version of this register map.",
        (
            Field("minor", 0, 16, "changes when something is added", MINOR),
            Field("major", 16, 16, "changes when old drivers stop working", MAJOR),
        ),
    ),
    Register(
        "ARRAY",
        0x08,
        Access.RO,
        "Configuration: sizes.",
        (
            Field("cdus", 0, 4, "CDUs"),
            Field("port_beats", 8, 4, "rows of 8 values per word of an uncompressed port"),
            Field("packed_bytes", 16, 8, "bytes per word of a packed port"),
            Field("duplex", 24, 1, "kind of duplex", values={name: number for number, name in enumerate(DUPLEX)}),
            Field("payload_crc", 25, 1, "payloads may carry a CRC-32"),
            Field(
                "completions", 26, max(COMPLETIONS).bit_length(), "jobs and their records for which a channel has room; 0: none"
            ),
        ),
        configured=True,
    ),
    Register(
        "NUMBERS",
        0x0C,
        Access.RO,
        "Configuration: arithmetic.",
        (
            Field("value_format", 0, 2, "format of uncompressed values", values={d.label: int(d) for d in Dtype}),
            Field("scale_bits", 8, 5, "significand bits of a multiplier, hidden bit included; one with more is refused"),
            Field("const_bits", 16, 4, "fraction bits of the DCT constants"),
            Field("pass1_bits", 20, 3, "fraction bits kept after the first pass of the DCT"),
            Field("rounding", 24, 1, "rounding of the shift quantiser", values={r.value: n for n, r in enumerate(Rounding)}),
            Field("reciprocal_bits", 26, 5, "significand bits of a reciprocal"),
        ),
        configured=True,
    ),
    Register(
        "MODES",
        0x10,
        Access.RO,
        "Configuration: modes that are built in.",
        (
            *(Field(mode.name.lower(), int(mode), 1, f"mode {mode.label} is built in") for mode in Mode),
            *(Field(coder.label, 24 + int(coder), 1, f"coder {coder.label} of mode jpeg-act is built in") for coder in Coder),
        ),
        configured=True,
    ),
    Register(
        "QUEUES",
        0x14,
        Access.RO,
        "Sizes of the queues of a channel.",
        (
            Field("jobs", 0, 8, "jobs that wait, besides those in the data path", JOB_QUEUE),
            Field("scales", 8, 8, "scales behind SCALE and SCALE_LAST", SCALE_QUEUE),
            Field("count_bits", 16, 6, "bits of BEATS, ROW_BEATS and CHANNEL_ROWS that a job may use", COUNT_BITS),
        ),
    ),
    Register(
        "INTERRUPTS",
        0x20,
        Access.RO,
        "Sources of the interrupt line, which is high while a bit is 1.",
        _flags(
            *((channel.value, f"INTERRUPT_STATUS & INTERRUPT_ENABLE of channel {channel.value}") for channel in Channel),
            ("bus", "BUS_ERRORS & BUS_ERROR_ENABLE"),
        ),
    ),
    Register(
        "BUS_ERRORS",
        0x24,
        Access.W1C,
        "Accesses that were refused with SLVERR.",
        _flags(
            (
                "bad_access",
                "no register at the address; a write to a read-only one, of a number that the register does not take, of less "
                "than 4 bytes, or of what only the DMA engine writes",
            )
        ),
    ),
    Register("BUS_ERROR_ENABLE", 0x28, Access.RW, "Errors that interrupt.", _flags(("bad_access", "BUS_ERRORS.bad_access"))),
    Register(
        "BAD_ADDRESS",
        0x2C,
        Access.RO,
        "Last access that was refused.",
        (
            Field("address", 0, ADDRESS_BITS, "its address, with two low bits of 0"),
            Field("write", 16, 1, "it was a write"),
        ),
    ),
)

CHANNEL = (
    Register(
        "CONTROL",
        0x00,
        Access.WO,
        "Commands, each given by writing 1.",
        _flags(
            ("start", "append the job in MODE to PAYLOAD_BYTES to the queue"),
            (
                "abort",
                "forget all jobs and queued scales, and a START in the same write; TLAST ends a packet that has begun at the "
                "output",
            ),
            (
                "flush",
                "with abort: throw away, up to TLAST, a packet that has begun or stands at the input or scale port; alone: "
                "nothing",
            ),
            ("clear_counters", "set all counters to 0"),
        ),
    ),
    Register(
        "STATUS",
        0x04,
        Access.RO,
        "State of the channel.",
        (
            Field("busy", 0, 1, "a job was started and has not ended"),
            Field("flushing", 1, 1, "the rest of a packet is being thrown away after a flush"),
            Field(
                "draining",
                2,
                1,
                "the sink has not taken a word of a forgotten job, or the end of its packet",
            ),
            Field("bank_busy", 4, BANKS, "bit b: a job that uses shift table b has not ended; it cannot be written"),
            Field("jobs", 8, MAX_JOBS.bit_length(), "jobs that were started and have not ended"),
            Field("queue_space", 16, JOB_QUEUE.bit_length(), "free places in the queue; at 0 START is refused", JOB_QUEUE),
            Field("scale_space", 24, 5, "free places in the queue of scales", SCALE_QUEUE),
        ),
    ),
    Register("ERRORS", 0x08, Access.W1C, "Errors, each until it is cleared.", _flags(*ERROR_FLAGS)),
    Register(
        "ERROR_ENABLE",
        0x0C,
        Access.RW,
        "Errors that set INTERRUPT_STATUS.error.",
        _flags(*((name, f"ERRORS.{name}") for name, _ in ERROR_FLAGS), reset=1),
    ),
    Register("INTERRUPT_STATUS", 0x10, Access.W1C, "Reasons to interrupt.", _flags(*_INTERRUPTS)),
    Register(
        "INTERRUPT_ENABLE",
        0x14,
        Access.RW,
        "Reasons that reach the interrupt line.",
        _flags(*((name, f"INTERRUPT_STATUS.{name}") for name, _ in _INTERRUPTS)),
    ),
    Register(
        "WATCHDOG",
        0x18,
        Access.RW,
        "Cycles without a transfer after which jobs are aborted.",
        _number(REGISTER_BITS, "0: never. Waiting for input, scales and the sink counts"),
    ),
    Register(
        "MODE",
        0x20,
        Access.RW,
        "Mode, shift table, source of the scales.",
        (
            Field("mode", 0, 4, "mode of the payload", values=_MODES, lowest=min(Mode), highest=max(Mode), at_start=True),
            Field(
                "bank",
                8,
                (BANKS - 1).bit_length(),
                "shift table of mode jpeg-act",
                values={f"SHIFTS{bank}": bank for bank in range(BANKS)},
            ),
            Field(
                "scales",
                12,
                max(ScaleSource).bit_length(),
                "source of the scales",
                values={source.name.lower(): int(source) for source in ScaleSource},
                highest=max(ScaleSource),
                at_start=True,
            ),
        ),
    ),
    Register(
        "BEATS",
        0x24,
        Access.RW,
        "Size.",
        _count(
            f"rows of 8 values, padding included; 1 to 2\\*\\*{COUNT_BITS} - 1, a multiple of 8 in the modes sfpr+zvc and "
            "autoquantz, of 4 in mx, of 8 \\* ROW_BEATS in jpeg-act, division and actnn",
        ),
    ),
    *(
        Register(name, offset, Access.RW, f"{text}.", _count(f"1 to 2\\*\\*{COUNT_BITS} - 1"))
        for name, offset, text in (
            ("ROW_BEATS", 0x28, "Rows of 8 values per row of the matrix"),
            ("CHANNEL_ROWS", 0x2C, "Rows of the matrix per scale"),
        )
    ),
    Register(
        "PAYLOAD_BYTES_LOW",
        0x30,
        Access.RW,
        "Length of the payload.",
        _number(REGISTER_BITS, "0 in both halves: not known; else checked by START, and against what comes, modulo 2\\*\\*32"),
        channels=(Channel.DECOMPRESS,),
    ),
    Register(
        "PAYLOAD_BYTES_HIGH",
        0x34,
        Access.RW,
        "Length of the payload.",
        _number(REGISTER_BITS, "high half"),
        channels=(Channel.DECOMPRESS,),
    ),
    Register(
        "SCALE",
        0x38,
        Access.WO,
        "Appends a scale to the queue.",
        _number(REGISTER_BITS, "float32 pattern: the multiplier k when compressing, the reciprocal r when decompressing"),
    ),
    Register(
        "SCALE_LAST",
        0x3C,
        Access.WO,
        "Appends the last scale of a job.",
        _number(REGISTER_BITS, "float32 pattern, as in SCALE"),
    ),
    Register(
        "QUANTIZER",
        0x40,
        Access.RW,
        "Settings of the affine quantiser.",
        (
            Field("bits_log2", 0, 2, "bits per code", values={f"bits{bits}": place for place, bits in enumerate(CODE_BITS)}),
            Field("step_log2", 4, (BASE_BITS - 1).bit_length(), "binary logarithm of a step that is the same for all blocks"),
            Field("stochastic", 8, 1, "round at random instead of to nearest"),
            Field(
                "range",
                9,
                1,
                "range of mode division",
                values={kind.value: place for place, kind in enumerate(RangeKind)},
            ),
            Field("statistics", 10, 1, "mode division, compressing: mean, least and greatest value of every block, no codes"),
        ),
        modes=AFFINE_MODES,
    ),
    Register(
        "SEED",
        0x44,
        Access.RW,
        "Seed of the random numbers.",
        _number(REGISTER_BITS, "any number"),
        channels=(Channel.COMPRESS,),
        modes=AFFINE_MODES,
    ),
    Register(
        "SCALE_OFFSET",
        0x48,
        Access.RW,
        "Offset of the scales that are written next.",
        (Field("offset", 0, BASE_BITS, "signed, in units of SFPR's result; used in mode blpa", signed=True),),
        modes=tuple(mode for mode in AFFINE_MODES if mode.has_offsets),
    ),
    Register(
        "CODING",
        0x4C,
        Access.RW,
        "Coder and reconstruction point of mode jpeg-act.",
        (
            Field("coder", 0, max(Coder).bit_length(), "coder of the payload", values={c.label: int(c) for c in Coder}),
            Field(
                "point",
                4,
                POINT_BITS,
                "decompressing: reconstruction point, in eighths of a step",
                highest=MAX_POINT,
                at_start=True,
            ),
        ),
        coder=Coder.GMC,
    ),
    Register(
        "PAYLOAD_CRC",
        0x50,
        Access.RW,
        "Checksum behind the payload.",
        (Field("present", 0, 1, "the payload's CRC-32, least significant byte first, which PAYLOAD_BYTES does not count"),),
        option="payload_crc",
    ),
    Register(
        "MX_CODING",
        0x54,
        Access.RW,
        "Format and scales of mode mx.",
        (
            Field(
                "format",
                0,
                (len(MX_FORMATS) - 1).bit_length(),
                "format of the blocks",
                values={name: kind.number for name, kind in MX_FORMATS.items()},
                highest=len(MX_FORMATS) - 1,
                at_start=True,
            ),
            Field(
                "rule",
                4,
                1,
                "compressing: how scales follow from the greatest magnitude of their block",
                values={rule.value: place for place, rule in enumerate(ScaleRule)},
            ),
        ),
        modes=(Mode.MX,),
    ),
    Register(
        "COMPLETION_KEEP",
        0x58,
        Access.RW,
        "Storage of the records of jobs that have ended.",
        _flags(
            (
                "keep",
                "records wait until they are taken, and START until there is room; 0: all are thrown away",
            )
        ),
        option="completions",
    ),
    Register(
        "COMPLETION",
        0x5C,
        Access.RO,
        "Oldest record that waits.",
        (
            Field("job", 0, JOB_NUMBER_BITS, "jobs started before this one since the reset, modulo 2\\*\\*16"),
            Field(
                "waiting",
                16,
                max(COMPLETIONS).bit_length(),
                "records that wait; at 0 the registers of records read 0",
            ),
        ),
        option="completions",
    ),
    Register(
        "COMPLETION_BYTES",
        0x60,
        Access.RO,
        "Oldest record: bytes of the payload that crossed the packed port.",
        _number(REGISTER_BITS, "without a CRC, modulo 2\\*\\*32"),
        option="completions",
    ),
    Register(
        "COMPLETION_ERRORS",
        0x64,
        Access.RO,
        "Oldest record: errors of the job.",
        tuple(
            Field(name, place, 1, f"ERRORS.{name}, of this job")
            for place, (name, _) in enumerate(ERROR_FLAGS)
            if name in JOB_ERRORS
        ),
        option="completions",
    ),
    Register(
        "COMPLETION_NEXT",
        0x68,
        Access.WO,
        "Goes to the next record.",
        _flags(("take", "the oldest record has been read, if there is one")),
        option="completions",
    ),
    Register(
        "JOBS_DONE",
        0x80,
        Access.RO,
        "Counter: jobs that have ended.",
        _number(REGISTER_BITS, "modulo 2\\*\\*32"),
    ),
    *(
        Register(f"{name}_{half}", offset + place * REGISTER_BYTES, Access.RO, text, _number(REGISTER_BITS, which))
        for name, offset, text in (
            ("CYCLES", 0x84, "Counter: cycles in which the channel was busy."),
            ("VALUES", 0x8C, "Counter: values that crossed the uncompressed port, padding included."),
            ("BYTES", 0x94, "Counter: bytes that crossed the packed port."),
        )
        for place, (half, which) in enumerate(
            (
                ("LOW", "read the low half first"),
                ("HIGH", "high half, kept by the read of the low half"),
            )
        )
    ),
    *(
        Register(name, offset, Access.RO, text, _number(REGISTER_BITS, "stops at 2\\*\\*32 - 1"))
        for name, offset, text in (
            (
                "INPUT_STALL",
                0x9C,
                "Counter: busy cycles in which the input was valid and not ready (the unit is slower).",
            ),
            (
                "INPUT_IDLE",
                0xA0,
                "Counter: busy cycles in which the input was ready and not valid (the source is slower).",
            ),
            (
                "OUTPUT_STALL",
                0xA4,
                "Counter: busy cycles in which the output was valid and not ready (the sink is slower).",
            ),
        )
    ),
    *(
        Register(
            f"SHIFTS{bank}",
            0x100 + bank * SHIFT_REGISTERS * REGISTER_BYTES,
            Access.RW,
            "Shift table, in the order of the payload.",
            tuple(
                Field(f"shift{place}", place * _NIBBLE_BITS, SHIFT_BITS, f"entry 8 \\* index + {place}")
                for place in range(_SHIFTS_PER_REGISTER)
            ),
            count=SHIFT_REGISTERS,
        )
        for bank in range(BANKS)
    ),
)

_BY_NAME = {register.name: register for register in (*GLOBAL, *CHANNEL)}


def register(name: str) -> Register:
    """Return a register by name."""
    return _BY_NAME[name]


def address(name: str, channel: Channel | None = None, index: int = 0) -> int:
    """Return the address of a register; without a channel that of the global block."""
    entry = _BY_NAME[name]
    table = GLOBAL if channel is None else channel_registers(channel)
    assert entry in table, f"no register {name} in {channel or 'the global block'}"
    assert 0 <= index < entry.count, f"no register {name}[{index}]"
    return (0 if channel is None else channel.base) + entry.offset + index * REGISTER_BYTES


def channel_registers(channel: Channel, config: CduConfig | None = None) -> tuple[Register, ...]:
    """Return the registers of a channel, in a unit of this configuration if one is given."""
    present = (entry for entry in CHANNEL if channel in entry.channels)
    return tuple(entry for entry in present if config is None or entry.exists_in(config))


def read_only_values(config: CduConfig) -> dict[str, int]:
    """Return the values of the global registers that describe a unit of this configuration."""
    built = {mode.name.lower(): int(mode in config.built_modes) for mode in Mode}
    built |= {coder.label: int(config.has_dct and coder in config.built_coders) for coder in Coder}
    return {name: _BY_NAME[name].reset for name in ("ID", "VERSION", "QUEUES")} | {
        "ARRAY": _BY_NAME["ARRAY"].pack(
            cdus=config.cdus,
            port_beats=config.port_beats,
            packed_bytes=config.packed_bytes,
            duplex=DUPLEX.index(config.duplex),
            payload_crc=config.payload_crc,
            completions=config.completions,
        ),
        "NUMBERS": _BY_NAME["NUMBERS"].pack(
            value_format=config.dtype,
            scale_bits=config.scale_bits,
            const_bits=config.const_bits,
            pass1_bits=config.pass1_bits,
            rounding=list(Rounding).index(config.rounding_mode),
            reciprocal_bits=config.used_reciprocal_bits,
        ),
        "MODES": _BY_NAME["MODES"].pack(**built),
    }


def pack_quantizer(settings: AffineSettings) -> int:
    """Return the value of QUANTIZER."""
    return _BY_NAME["QUANTIZER"].pack(
        bits_log2=CODE_BITS.index(settings.bits),
        step_log2=settings.step_log2,
        stochastic=settings.stochastic,
        range=settings.block_range,
        statistics=settings.statistics,
    )


def pack_mx(settings: MxSettings) -> int:
    """Return the value of MX_CODING."""
    return _BY_NAME["MX_CODING"].pack(format=settings.kind.number, rule=list(ScaleRule).index(settings.rule))


def pack_shift_registers(shifts: tuple[int, ...]) -> list[int]:
    """Return the values of the registers of a shift table, from 64 shifts (0..7) in the order of the payload."""
    assert len(shifts) == BLOCK_VALUES
    entry = _BY_NAME["SHIFTS0"]
    return [
        entry.pack(**{f"shift{place}": shift for place, shift in enumerate(shifts[begin : begin + _SHIFTS_PER_REGISTER])})
        for begin in range(0, BLOCK_VALUES, _SHIFTS_PER_REGISTER)
    ]


def entries(config: CduConfig) -> Iterator[dict[str, Any]]:
    """Yield every register of a unit with its address, for the manifest of generated files."""
    fixed = read_only_values(config)
    for block, channel in (("global", None), *((channel.value, channel) for channel in Channel)):
        for entry in GLOBAL if channel is None else channel_registers(channel, config):
            yield {
                "name": entry.name,
                "block": block,
                "address": address(entry.name, channel),
                "count": entry.count,
                "access": entry.access.value,
                "reset": fixed.get(entry.name, entry.reset),
                "fields": [{"name": part.name, "offset": part.low, "width": part.width} for part in entry.fields],
                "description": entry.description,
            }
