"""Words of memory to the words of a scale port."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.bitstream import RECIPROCAL_BYTES
from cdu_spec.config import CduConfig
from cdu_spec.ports import scale_port_bytes

from cdu.parts.width_converter import Bytes, WidthConverter


class ScaleWords(wiring.Component):
    """A transfer for each scale that lies in memory: 4 bytes one behind the other, or 8 with the offset of its channel.

    Parameters
    ----------
    config
        Whether there are offsets, and so a wide port.
    size
        Bytes of a word of memory.

    Ports
    -----
    i
        Stream of :class:`~cdu.parts.width_converter.Bytes`: whole scales, words full but for the last one. That one is not
        empty, as no segment of :class:`~cdu.dma.scale_walk.ScaleWalk` is.
    wide
        There are offsets beside the scales of this packet.
    o
        Stream of Bytes of the port. A transfer is full; bytes that have not been in memory are undefined.

    No latency; a scale per cycle.
    """

    i: stream.Interface
    wide: Signal
    o: stream.Interface

    def __init__(self, config: CduConfig, size: int) -> None:
        self.size, self.port = size, scale_port_bytes(config.has_offsets)
        super().__init__({"i": In(stream.Signature(Bytes(size))), "wide": In(1), "o": Out(stream.Signature(Bytes(self.port)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.words = words = WidthConverter(self.size, self.port)
        connect(m, flipped(self.i), words.i)
        word, scale = words.o.payload, self.o.payload
        m.d.comb += [
            self.o.valid.eq(words.o.valid),
            scale["data"].eq(word["data"]),
            scale["count"].eq(self.port),
            scale["last"].eq(word["last"]),
            words.o.ready.eq(self.o.ready),
        ]
        if self.port > RECIPROCAL_BYTES:
            self._halve(m, words)
        return m

    def _halve(self, m: Module, words: WidthConverter) -> None:
        """Two scales of a word without offsets; the last word may have one."""
        word, scale = words.o.payload, self.o.payload
        second = Signal()
        two = Signal()
        m.d.comb += [
            two.eq(~self.wide & ~second & (word["count"] > RECIPROCAL_BYTES)),
            scale["data"].eq(Mux(second, word["data"][8 * RECIPROCAL_BYTES :], word["data"])),
            scale["last"].eq(word["last"] & ~two),
            words.o.ready.eq(self.o.ready & ~two),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += second.eq(two)
