"""Gate for packets."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from cdu.parts.width_converter import Bytes


class Passage(data.StructLayout):
    """Fate of a packet: the gate ``drops`` it or lets it through; ``wide``: its scales have offsets beside them."""

    def __init__(self) -> None:
        super().__init__({"drops": 1, "wide": 1})


class PacketGate(wiring.Component):
    """Let packets through, or drop them, each on command.

    Parameters
    ----------
    size
        Bytes of a word.

    Ports
    -----
    i, o
        Streams of :class:`~cdu.parts.width_converter.Bytes`.
    passages
        Stream of :class:`Passage`, one for each packet; it is taken with the last word.

    No latency; packets follow one another without a gap.
    """

    i: stream.Interface
    o: stream.Interface
    passages: stream.Interface

    def __init__(self, size: int) -> None:
        words = stream.Signature(Bytes(size))
        super().__init__({"i": In(words), "o": Out(words), "passages": In(stream.Signature(Passage()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        drops = self.passages.payload["drops"]
        m.d.comb += [
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(self.i.valid & self.passages.valid & ~drops),
            self.i.ready.eq(self.passages.valid & (self.o.ready | drops)),
            self.passages.ready.eq(self.i.valid & self.i.ready & self.i.payload["last"]),
        ]
        return m
