"""The registers of one unit, block by block, with their reset values, for descriptions that other programs read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cdu_spec.config import CduConfig
from cdu_spec.dma import DMA_CHANNEL, DMA_CHANNEL_BYTES, dma_base
from cdu_spec.modes import Mode
from cdu_spec.register_types import BLOCK_BYTES, Access, Channel, Register
from cdu_spec.registers import GLOBAL, channel_registers, read_only_values


@dataclass(frozen=True)
class RegisterBlock:
    """A block of registers with a base address.

    Parameters
    ----------
    name
        ``None`` for the global block.
    base
        Address of its first register.
    size
        Bytes of its addresses.
    description
        A sentence.
    registers
        Registers of this unit; ``reset`` of each is the value read after reset.
    constant
        Names of registers that never change.
    """

    name: str | None
    base: int
    size: int
    description: str
    registers: tuple[Register, ...]
    constant: frozenset[str] = frozenset()


def register_blocks(config: CduConfig) -> Iterator[RegisterBlock]:
    """Yield all blocks of a unit, followed by those of its DMA engine, in the order of their addresses."""
    fixed = read_only_values(config)
    known = tuple(_with_reset(entry, fixed[entry.name]) if entry.name in fixed else entry for entry in GLOBAL)
    yield RegisterBlock(None, 0, BLOCK_BYTES, "What the unit is.", known, frozenset(fixed))
    has_tables, has_engine = Mode.JPEG_ACT in config.built_modes, bool(config.dma_bits)
    for channel in Channel:
        present = tuple(entry if has_tables else _without_table(entry) for entry in channel_registers(channel, config))
        if has_engine:  # only the engine writes them
            present = tuple(replace(entry, access=Access.RO) for entry in present if entry.access is not Access.WO)
        yield RegisterBlock(channel.value, channel.base, BLOCK_BYTES, f"Channel {channel.value}.", present)
    for channel in Channel if has_engine else ():
        about = f"DMA engine, {channel.value}."
        yield RegisterBlock(f"dma_{channel.value}", dma_base(channel), DMA_CHANNEL_BYTES, about, DMA_CHANNEL)


def plain(text: str) -> str:
    """Return a description without the marks that the manual needs."""
    return text.replace("\\*", "*")


def _with_reset(entry: Register, value: int) -> Register:
    return replace(entry, fields=tuple(replace(part, reset=part.get(value)) for part in entry.fields))


def _without_table(entry: Register) -> Register:
    """Return the register of a unit without mode jpeg-act: shift tables exist but read 0, and writes do nothing."""
    return replace(entry, access=Access.RO) if entry.name.startswith("SHIFTS") else entry
