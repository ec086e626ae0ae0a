"""Bypass: values to payload and back without a change, between ports of different width."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig

from cdu.width_converter import WidthConverter
from cdu.words import PackedWord, ValueWord


class BypassPacker(wiring.Component):
    """Words of P beats to words of M bytes.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.ValueWord`, full but for the last one of a job.
    o
        Stream of :class:`~cdu.words.PackedWord`, full but for the last one of a job.

    No latency; one transfer per cycle on the narrower side.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.beat_bytes, self.beats, self.packed_bytes = config.beat_bits // 8, config.port_beats, config.packed_bytes
        super().__init__({"i": In(stream.Signature(ValueWord(config))), "o": Out(stream.Signature(PackedWord(config)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.converter = converter = WidthConverter(self.beats * self.beat_bytes, self.packed_bytes)
        m.d.comb += [
            converter.i.valid.eq(self.i.valid),
            self.i.ready.eq(converter.i.ready),
            converter.i.payload["data"].eq(self.i.payload["values"]),
            converter.i.payload["count"].eq(self.i.payload["count"] * self.beat_bytes),
            converter.i.payload["last"].eq(self.i.payload["last"]),
        ]
        connect(m, converter.o, flipped(self.o))
        return m


class BypassUnpacker(wiring.Component):
    """Words of M bytes to words of P beats; a beat of which a part came counts as one, zeros being the rest.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.PackedWord`; a word that is neither full nor the last one counts as full.
    o
        Stream of :class:`~cdu.words.ValueWord`.

    No latency; one transfer per cycle on the narrower side.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.beat_bytes, self.beats, self.packed_bytes = config.beat_bits // 8, config.port_beats, config.packed_bytes
        super().__init__({"i": In(stream.Signature(PackedWord(config))), "o": Out(stream.Signature(ValueWord(config)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.converter = converter = WidthConverter(self.packed_bytes, self.beats * self.beat_bytes)
        connect(m, flipped(self.i), converter.i)
        m.d.comb += [
            self.o.valid.eq(converter.o.valid),
            converter.o.ready.eq(self.o.ready),
            self.o.payload["values"].eq(converter.o.payload["data"]),
            self.o.payload["count"].eq((converter.o.payload["count"] + self.beat_bytes - 1) // self.beat_bytes),
            self.o.payload["last"].eq(converter.o.payload["last"]),
        ]
        return m
