"""Shifters of bits with results of the least width."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value


def raised(m: Module, bits: Value, places: Value, most: int, name: str) -> Value:
    """Return ``bits`` behind ``places`` zeros, at most ``most`` bits of them; a signal per stage."""
    for stage in range(len(places)):
        moved = Signal(min(len(bits) + (1 << stage), most), name=f"{name}{1 << stage}")
        m.d.comb += moved.eq(Mux(places[stage], bits << (1 << stage), bits))
        bits = moved
    return bits


def dropped(m: Module, bits: Value, places: Value, most: int, name: str) -> Value:
    """Return ``bits`` without the first ``places``, at most ``most`` bits of them; a signal per stage."""
    for stage in reversed(range(len(places))):
        moved = Signal(min(len(bits), most + (1 << stage) - 1), name=f"{name}{1 << stage}")
        m.d.comb += moved.eq(Mux(places[stage], bits >> (1 << stage), bits))
        bits = moved
    return bits
