"""Converter of words of bytes to wider or narrower words."""

from __future__ import annotations

from collections.abc import Iterable

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out


class Bytes(data.StructLayout):
    """Up to ``size`` bytes, first byte in the lowest bits, zeros behind ``count`` of them; ``last`` ends a job.

    The last word of a job may have no bytes, alone or behind other words. Every receiver takes such an end, and may pass it
    on, unless its documentation excludes that.
    """

    def __init__(self, size: int) -> None:
        super().__init__({"data": 8 * size, "count": range(size + 1), "last": 1})


def ones(count: Value, size: int) -> list[Value]:
    """Return ``size`` bits, of which the lowest ``count`` are ones; separately, or each would be made from all of them."""
    return [count > place for place in range(size)]


def expand(mask: Iterable[Value]) -> Value:
    """Return every bit of a mask eight times: a byte enable as a bit mask."""
    return Cat(*(bit.replicate(8) for bit in mask))


class WidthConverter(wiring.Component):
    """Convert words of ``i_bytes`` to words of ``o_bytes``, one of which is a multiple of the other.

    Words of a job are full except for the last one; a partial word before it is taken for a full one whose missing bytes are
    zeros. A job of no bytes gives one word of no bytes.

    Ports: ``i``, ``o`` streams of :class:`Bytes`. No latency; one transfer per cycle on the narrower side.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 0

    def __init__(self, i_bytes: int, o_bytes: int) -> None:
        if max(i_bytes, o_bytes) % min(i_bytes, o_bytes):
            raise ValueError(f"neither of {i_bytes} and {o_bytes} bytes is a multiple of the other")
        self.i_bytes, self.o_bytes = i_bytes, o_bytes
        super().__init__({"i": In(stream.Signature(Bytes(i_bytes))), "o": Out(stream.Signature(Bytes(o_bytes)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.i_bytes > self.o_bytes:
            self._cut(m)
        elif self.i_bytes < self.o_bytes:
            self._collect(m)
        else:
            wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        return m

    def _cut(self, m: Module) -> None:
        pieces = self.i_bytes // self.o_bytes
        word, piece = self.i.payload, self.o.payload
        place = Signal(range(pieces))
        begin = Signal(range(self.i_bytes))
        left = Signal(range(self.i_bytes + 1))
        m.d.comb += [
            begin.eq(place * self.o_bytes),
            left.eq(Mux(word["last"], word["count"], self.i_bytes) - begin),
            self.o.valid.eq(self.i.valid),
            piece["data"].eq(word["data"].word_select(place, 8 * self.o_bytes)),
            piece["count"].eq(Mux(left > self.o_bytes, self.o_bytes, left)),
            piece["last"].eq(word["last"] & (left <= self.o_bytes)),
            self.i.ready.eq(self.o.ready & (left <= self.o_bytes)),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += place.eq(Mux(left <= self.o_bytes, 0, place + 1))

    def _collect(self, m: Module) -> None:
        pieces = self.o_bytes // self.i_bytes
        piece, word = self.i.payload, self.o.payload
        place = Signal(range(pieces))
        held = Signal(8 * (self.o_bytes - self.i_bytes))
        complete = (place == pieces - 1) | piece["last"]
        m.d.comb += [
            word["data"].eq(held),
            word["data"].word_select(place, 8 * self.i_bytes).eq(piece["data"]),
            word["count"].eq(place * self.i_bytes + Mux(piece["last"], piece["count"], self.i_bytes)),
            word["last"].eq(piece["last"]),
            self.o.valid.eq(self.i.valid & complete),
            self.i.ready.eq(self.o.ready | ~complete),
        ]
        with m.If(self.i.valid & self.i.ready):
            with m.If(complete):
                m.d.sync += [place.eq(0), held.eq(0)]
            with m.Else():
                m.d.sync += [place.eq(place + 1), held.word_select(place, 8 * self.i_bytes).eq(piece["data"])]
