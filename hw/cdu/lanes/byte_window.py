"""Window onto packed bytes: they come as words of any count and leave from the front, any number per cycle."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from cdu.parts.barrel import shift_left, shift_right
from cdu.parts.width_converter import Bytes


class ByteWindow(wiring.Component):
    """Window with the bytes at the front of a payload, of one job at a time.

    Parameters
    ----------
    word_bytes
        M.
    reach
        Greatest number of bytes that leave in a cycle. With room for ``reach`` and a word less one byte, a word is taken in
        every cycle in which the window could run short in the next one.

    Ports
    -----
    i
        Stream of :class:`~cdu.parts.width_converter.Bytes`, words of M bytes, of any count; the last one may be empty. A word
        behind a ``last`` is not taken before ``finishes``.
    data, level
        The bytes, the first one lowest, zeros behind them; their number.
    ended
        The last bytes of the job are among them.
    amount
        Bytes that leave in this cycle, up to ``reach``.
    remaining, short
        Bytes that stay; there are fewer than ``amount``.
    finishes
        The job ends in this cycle: the word that is taken, if any, is the first one of the next.
    drains
        The job needs no more bytes: words up to its ``last`` are taken and dropped.
    wasted
        Bytes are dropped in this cycle, as they come.

    Latency: 1 cycle from ``i`` to ``data``.
    """

    i: stream.Interface
    data: Signal
    level: Signal
    ended: Signal
    amount: Signal
    remaining: Signal
    short: Signal
    finishes: Signal
    drains: Signal
    wasted: Signal

    def __init__(self, word_bytes: int, reach: int) -> None:
        self.word_bytes = word_bytes
        self.room = reach + self.word_bytes - 1
        super().__init__(
            {
                "i": In(stream.Signature(Bytes(word_bytes))),
                "data": Out(8 * self.room),
                "level": Out(range(self.room + 1)),
                "ended": Out(1),
                "amount": In(range(reach + 1)),
                "remaining": Out(range(self.room + 1)),
                "short": Out(1),
                "finishes": In(1),
                "drains": In(1),
                "wasted": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = self.i.payload
        takes = Signal()
        loads = Signal()
        fresh = Signal(8 * self.room)
        discards = self.drains & ~self.finishes
        m.d.comb += [
            self.short.eq(self.amount > self.level),
            self.remaining.eq(Mux(self.short, 0, self.level - self.amount)),
            self.i.ready.eq((self.finishes | ~self.ended) & (self.drains | (self.remaining <= self.room - self.word_bytes))),
            takes.eq(self.i.valid & self.i.ready),
            loads.eq(takes & ~discards),
            fresh.eq(Mux(loads, word["data"], 0)),
            self.wasted.eq(takes & discards & (word["count"] != 0)),
        ]
        kept = shift_right(m, self.data, self.amount, "kept")
        m.d.sync += [
            self.data.eq(kept | shift_left(m, fresh, self.remaining, "fresh")),
            self.level.eq(self.remaining + Mux(loads, word["count"], 0)),
            self.ended.eq(Mux(takes, word["last"], self.ended & ~self.finishes)),
        ]
        return m
