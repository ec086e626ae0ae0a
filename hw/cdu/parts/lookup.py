"""Small constant tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Module, Signal, Value


def lookup(m: Module, table: Mapping[int, Sequence[int]], row: Value, column: Value, name: str) -> Signal:
    """Return ``table[row][column]``, combinationally; 0 if the table has no entry. Entries are not negative."""
    entry = Signal(range(max(max(entries) for entries in table.values()) + 1), name=name)
    with m.Switch(row):
        for number, entries in table.items():
            with m.Case(number), m.Switch(column):
                for place, value in enumerate(entries):
                    if value and place < 1 << len(column):
                        with m.Case(place):
                            m.d.comb += entry.eq(value)
    return entry
