"""Round robin."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal, Value


def round_robin(m: Module, count: int, step: Value, name: str) -> Value:
    """Return a register that counts 0 to ``count - 1`` and begins again, a step in every cycle in which ``step`` is high."""
    if count == 1:
        return Const(0, 1)
    turn = Signal(range(count), name=name)
    with m.If(step):
        m.d.sync += turn.eq(Mux(turn == count - 1, 0, turn + 1))
    return turn
