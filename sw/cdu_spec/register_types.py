"""Parts of the register map: registers, fields, channels and their sizes.

Registers have 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.modes import Coder, Mode

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
NIBBLE_BITS = 4
SHIFTS_PER_REGISTER = REGISTER_BITS // NIBBLE_BITS
#: Registers of one shift table.
SHIFT_REGISTERS = BLOCK_VALUES // SHIFTS_PER_REGISTER


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
    ``modes`` the register exists in units that have at least one of them, with ``coder`` in units that have it, with
    ``options`` in those where a parameter of one of these names is not 0. Bits outside the fields read 0; a write to them is
    ignored in registers of flags, and refused if it would cut off a number (:meth:`takes`).
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
    options: tuple[str, ...] = ()

    def exists_in(self, config: CduConfig) -> bool:
        """Return whether a unit of this configuration has the register."""
        if self.coder is not None and self.coder not in config.built_coders:
            return False
        if self.options and not any(getattr(config, option) for option in self.options):
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


def number(width: int, description: str, reset: int = 0) -> tuple[Field, ...]:
    """Return the fields of a register that is one number."""
    return (Field("value", 0, width, description, reset),)


def count(description: str) -> tuple[Field, ...]:
    """Return the fields of a register that is a count of a job."""
    return (Field("value", 0, REGISTER_BITS, description, lowest=1, highest=(1 << COUNT_BITS) - 1, at_start=True),)


def flags(*named: tuple[str, str], reset: int = 0) -> tuple[Field, ...]:
    """Return single bits from bit 0."""
    return tuple(Field(name, place, 1, description, reset) for place, (name, description) in enumerate(named))
