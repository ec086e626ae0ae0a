"""Slices to narrower parts."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig

from cdu.coding.gmc_words import Mark, mark_of, slot_bytes
from cdu.words import Slice


class SlicePart(data.StructLayout):
    """Some bytes of a block, zeros behind its end; ``ends`` marks the last part of the block."""

    def __init__(self, config: CduConfig) -> None:
        super().__init__({"data": 8 * slot_bytes(config), "ends": 1, "tag": Mark()})


class SliceCutter(wiring.Component):
    """Cuts slices that are wider than a slot of a decoder.

    Parameters
    ----------
    config
        ``slice_bytes``: the width of a slice.

    Ports: ``i``, a stream of :class:`~cdu.words.Slice`; ``o``, a stream of :class:`SlicePart`.

    Latency 1 cycle, a part per cycle; slices that are no wider than a part pass in the same cycle.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.size = slot_bytes(config)
        self.parts = config.slice_bytes // self.size
        super().__init__({"i": In(stream.Signature(Slice(config))), "o": Out(stream.Signature(SlicePart(config)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slice_in: Any = self.i.payload
        out: Any = self.o.payload
        if self.parts == 1:
            m.d.comb += [
                self.i.ready.eq(self.o.ready),
                self.o.valid.eq(self.i.valid),
                out["data"].eq(slice_in["data"]),
                out["ends"].eq(slice_in["ends"]),
                *mark_of(out["tag"], slice_in["tag"]),
            ]
            return m
        # One register for each field: what leaves is a part of the data, and no other field.
        content = Signal(len(slice_in["data"]), reset_less=True)
        count = Signal(len(slice_in["count"]), reset_less=True)
        ends = Signal(reset_less=True)
        mark = Signal(Mark(), reset_less=True)
        valid = Signal()
        final = Signal()
        m.d.comb += [
            final.eq(count <= self.size),
            self.i.ready.eq(~valid | (self.o.ready & final)),
            self.o.valid.eq(valid),
            out["data"].eq(content),
            out["ends"].eq(ends & final),
            out["tag"].eq(mark),
        ]
        with m.If(self.i.ready):
            m.d.sync += [
                valid.eq(self.i.valid),
                content.eq(slice_in["data"]),
                count.eq(slice_in["count"]),
                ends.eq(slice_in["ends"]),
                *mark_of(mark, slice_in["tag"]),
            ]
        with m.Elif(self.o.ready):
            m.d.sync += [content.eq(content >> (8 * self.size)), count.eq(count - self.size)]
        return m
