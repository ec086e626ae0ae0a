"""Between chunks of 0 to 16 bytes and words of 16 bytes: the packer and the unpacker of a payload."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.geometry import PACKED_BYTES

from cdu.streams import ByteWindow, Chunk

_WORD_BITS = 8 * PACKED_BYTES


class Word(data.StructLayout):
    """1 to 16 bytes of payload, first byte in the lowest bits; all but the last word of a job hold 16."""

    def __init__(self) -> None:
        super().__init__({"data": _WORD_BITS, "count": range(PACKED_BYTES + 1), "last": 1})


class BytePacker(wiring.Component):
    """Chunks to words without gaps.

    Ports
    -----
    i
        Stream of chunks; bytes beyond ``count`` must be zero. The job ends with ``last`` and has at least one byte.
    o
        Stream of words.

    Latency 1 cycle. One chunk per cycle; the last one of a job takes two when it does not fit the last word.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(Chunk())), "o": Out(stream.Signature(Word()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = Signal(_WORD_BITS)  # 0 to 16 bytes: a full word waits for its successor, for it may be the last
        level = Signal(range(PACKED_BYTES + 1))
        ending = Signal()  # what is held is the end of the job

        advance = ~self.o.valid | self.o.ready
        chunk = self.i.payload
        both = held | (chunk["data"].as_value() << (level << 3))[: 2 * _WORD_BITS]
        total = level + chunk["count"]
        overflows = total > PACKED_BYTES
        m.d.comb += self.i.ready.eq(advance & ~ending)
        with m.If(advance):
            m.d.sync += self.o.valid.eq(ending | (self.i.valid & (overflows | chunk["last"])))
            m.d.sync += self.o.payload.eq(
                Cat(
                    Mux(ending, held, both[:_WORD_BITS]),
                    Mux(ending, level, Mux(overflows, PACKED_BYTES, total[: len(level)])),
                    ending | (chunk["last"] & ~overflows),
                )
            )
            with m.If(ending):
                m.d.sync += [held.eq(0), level.eq(0), ending.eq(0)]
            with m.Elif(self.i.valid):
                with m.If(overflows):
                    m.d.sync += [held.eq(both[_WORD_BITS:]), level.eq(total - PACKED_BYTES), ending.eq(chunk["last"])]
                with m.Elif(chunk["last"]):
                    m.d.sync += [held.eq(0), level.eq(0)]
                with m.Else():
                    m.d.sync += [held.eq(both), level.eq(total)]
        return m


class ByteUnpacker(wiring.Component):
    """Words to a window of bytes from which a decoder takes as many as it needs.

    Ports
    -----
    i
        Stream of words; a word with ``count`` below 16 may stand anywhere, bytes beyond ``count`` are ignored.
    window
        :data:`cdu.streams.ByteWindow`. When the last word is used up, zeros are handed out without end.
    discard
        Throw away what is held, and words up to and including the last one.
    expecting
        The last word of the job has not come yet; set by ``start``.
    short
        Zeros are being taken in place of bytes that never came, in this cycle.
    surplus
        Bytes are being thrown away, in this cycle.
    start
        High for a cycle before a job begins.

    Latency 1 cycle; 16 bytes per cycle.
    """

    i: stream.Interface
    discard: Signal
    start: Signal
    expecting: Signal
    short: Signal
    surplus: Signal
    window: Any

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(Word())),
                "window": Out(ByteWindow),
                "discard": In(1),
                "start": In(1),
                "expecting": Out(1),
                "short": Out(1),
                "surplus": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = Signal(2 * _WORD_BITS)
        level = Signal(range(2 * PACKED_BYTES + 1))
        take = self.window.take
        word = self.i.payload
        valid_bytes = Cat(*((word["count"] > place).replicate(8) for place in range(PACKED_BYTES)))

        m.d.comb += [
            self.window.data.eq(held[:_WORD_BITS]),
            self.window.available.eq(Mux(~self.expecting | (level > PACKED_BYTES), PACKED_BYTES, level[: len(take)])),
            self.short.eq(take > level),
            self.surplus.eq(self.discard & ((level != 0) | (self.i.valid & self.i.ready & (word["count"] != 0)))),
        ]
        remaining = Signal.like(level)
        m.d.comb += remaining.eq(Mux(self.short, 0, level - take))
        m.d.comb += self.i.ready.eq(self.expecting & (self.discard | (remaining <= PACKED_BYTES)))
        rest = held >> (take << 3)
        fresh = Cat(word["data"] & valid_bytes, Const(0, _WORD_BITS)) << (remaining << 3)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                held.eq(rest | fresh[: 2 * _WORD_BITS]),
                level.eq(remaining + word["count"]),
                self.expecting.eq(~word["last"]),
            ]
        with m.Else():
            m.d.sync += [held.eq(rest), level.eq(remaining)]
        with m.If(self.discard | self.start):
            m.d.sync += [held.eq(0), level.eq(0)]
        with m.If(self.start):
            m.d.sync += self.expecting.eq(1)
        return m
