"""Remover of the zero byte after every FF of a segment, the inverse of :class:`~cdu.coding.byte_stuffer.ByteStuffer`."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.jpeg import MARKER

from cdu.coding.zvc import popcount
from cdu.parts.streams import registered
from cdu.parts.width_converter import Bytes


class CodedBytes(data.StructLayout):
    """Up to ``size`` bytes of coded bits, zeros behind ``count`` of them.

    ``last`` ends the segment; ``marked`` with it: an FF was followed by another byte than zero, or by none.
    """

    def __init__(self, size: int) -> None:
        super().__init__({"data": 8 * size, "count": range(size + 1), "last": 1, "marked": 1})


class ByteUnstuffer(wiring.Component):
    """Remove the zero byte that follows an FF. The segment ends at a marker; bytes behind it are dropped.

    Parameters
    ----------
    size
        Bytes of a word.

    Ports
    -----
    i
        Stream of :class:`~cdu.parts.width_converter.Bytes`.
    o
        Stream of :class:`CodedBytes`, of any count.

    Latency: 1 cycle. One transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 1

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__({"i": In(stream.Signature(Bytes(size))), "o": Out(stream.Signature(CodedBytes(size)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = self.size
        word: Any = self.i.payload
        out: Any = self.o.payload
        advance = Signal()
        takes = Signal()
        skips = Signal()
        m.d.comb += [advance.eq(~self.o.valid | self.o.ready), self.i.ready.eq(advance), takes.eq(self.i.valid & advance)]
        coded = [word["data"].word_select(place, 8) for place in range(size)]
        # Whether each byte, and the byte behind the word, follows an FF. Behind the end of a word there are zeros.
        marked = Signal()
        behind = Signal(size + 1)
        m.d.comb += behind.eq(Cat(marked, *(byte == MARKER for byte in coded)))
        wrong = Signal(size)
        kept = Signal(size)
        for place, byte in enumerate(coded):
            there = word["count"] > place
            m.d.comb += [
                wrong[place].eq(behind[place] & there & byte.any()),
                kept[place].eq(~behind[place] & there & ~wrong[:place].any()),
            ]
        open_end = Signal()
        m.d.comb += open_end.eq(behind.bit_select(word["count"], 1))
        with m.If(takes):
            m.d.sync += [marked.eq(open_end & ~word["last"]), skips.eq((skips | wrong.any()) & ~word["last"])]
            with m.If(wrong.any()):
                m.d.sync += marked.eq(0)
        with m.If(advance):
            m.d.sync += self.o.valid.eq(self.i.valid & ~skips)
        ranks = [popcount(kept[:place]) if place else Const(0) for place in range(size)]

        def at(place: int) -> Value:
            candidates = (Mux(kept[source] & (ranks[source] == place), coded[source], 0) for source in range(place, size))
            return reduce(or_, candidates)

        parts = {
            "data": Cat(*(at(place) for place in range(size))),
            "count": popcount(kept),
            "last": word["last"] | wrong.any(),
            "marked": wrong.any() | (word["last"] & open_end),
        }
        m.d.comb += [out[name].eq(registered(m, advance, part, name)) for name, part in parts.items()]
        return m
