"""Gate for packets."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from cdu.parts.width_converter import Bytes


class PacketGate(wiring.Component):
    """Let one packet through, or drop it, on command.

    Parameters
    ----------
    size
        Bytes of a word.

    Ports
    -----
    i, o
        Streams of :class:`~cdu.parts.width_converter.Bytes`.
    opens, drops
        Let the next packet pass; drop its words. Each is held until the packet ``ends``, never both.
    ends
        The last word of the packet leaves in this cycle.

    No latency.
    """

    i: stream.Interface
    o: stream.Interface
    opens: Signal
    drops: Signal
    ends: Signal

    def __init__(self, size: int) -> None:
        words = stream.Signature(Bytes(size))
        super().__init__({"i": In(words), "o": Out(words), "opens": In(1), "drops": In(1), "ends": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(self.i.valid & self.opens),
            self.i.ready.eq((self.o.ready & self.opens) | self.drops),
            self.ends.eq(self.i.valid & self.i.ready & self.i.payload["last"]),
        ]
        return m
