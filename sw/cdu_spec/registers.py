"""The register map: registers of a unit at its AXI4-Lite port.

The RTL, docs/reference/registers.md, the C header, the driver and the tests are all made from the tables in this file and in
:mod:`cdu_spec.channel_block`. After a global block come two channels of the same layout, one per direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cdu_spec.affine import CODE_BITS, AffineSettings
from cdu_spec.bitstream import MAGIC
from cdu_spec.channel_block import CHANNEL
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import COMPLETIONS, DUPLEX
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.modes import Coder, Dtype, Mode
from cdu_spec.mx import MxSettings, ScaleRule
from cdu_spec.register_types import (
    ADDRESS_BITS,
    COUNT_BITS,
    JOB_QUEUE,
    REGISTER_BYTES,
    SCALE_QUEUE,
    SHIFTS_PER_REGISTER,
    Access,
    Channel,
    Field,
    Register,
    flags,
    number,
)
from cdu_spec.rounding import Rounding

#: Version of this map: the major number changes when old drivers stop working.
MAJOR, MINOR = 1, 7

GLOBAL = (
    Register("ID", 0x00, Access.RO, "Identification.", number(32, "the bytes 'CDU', 1A", int.from_bytes(MAGIC, "little"))),
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
        flags(
            *((channel.value, f"INTERRUPT_STATUS & INTERRUPT_ENABLE of channel {channel.value}") for channel in Channel),
            ("bus", "BUS_ERRORS & BUS_ERROR_ENABLE"),
        ),
    ),
    Register(
        "BUS_ERRORS",
        0x24,
        Access.W1C,
        "Accesses that were refused with SLVERR.",
        flags(
            (
                "bad_access",
                "no register at the address; a write to a read-only one, of a number that the register does not take, of less "
                "than 4 bytes, or of what only the DMA engine writes",
            )
        ),
    ),
    Register("BUS_ERROR_ENABLE", 0x28, Access.RW, "Errors that interrupt.", flags(("bad_access", "BUS_ERRORS.bad_access"))),
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
            completions=config.ledger_jobs,
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
        entry.pack(**{f"shift{place}": shift for place, shift in enumerate(shifts[begin : begin + SHIFTS_PER_REGISTER])})
        for begin in range(0, BLOCK_VALUES, SHIFTS_PER_REGISTER)
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
