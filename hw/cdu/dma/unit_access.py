"""Accesses of the engine to the unit's registers."""

from __future__ import annotations

from typing import Any

from cdu_spec.register_types import REGISTER_BYTES, Channel
from cdu_spec.registers import address


def ask(access: Any, channel: Channel, name: str, value: Any = None) -> list[Any]:
    """Return statements that ask an :data:`~cdu.bus.axi_lite.AccessPort` for a read of a register, or a write of ``value``."""
    return [
        access.active.eq(1),
        access.word.eq(address(name, channel) // REGISTER_BYTES),
        access.write.eq(int(value is not None)),
        access.whole.eq(1),
        access.data.eq(0 if value is None else value),
    ]
