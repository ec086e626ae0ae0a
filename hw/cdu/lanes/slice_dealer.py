"""Deals the slices of blocks out to N lanes, a block to each in turn."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig

from cdu.parts.turns import round_robin
from cdu.words import Slice


class SliceDealer(wiring.Component):
    """One slice at a time in a register, shown to the lane whose turn it is.

    Parameters
    ----------
    config
        N, S and ``modes``.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.Slice` with any bytes behind ``count``.
    waits
        The slice that is taken is not shown in the next cycle, but in the one after it.
    o
        N streams of :class:`~cdu.words.Slice`: the first block to lane 0, the next one to lane 1, and so on.

    Latency 1 cycle, 2 with ``waits``; a slice per cycle.
    """

    i: stream.Interface
    waits: Signal
    o: list[stream.Interface]

    def __init__(self, config: CduConfig) -> None:
        self.cdus, self.size = config.cdus, config.slice_bytes
        slices = stream.Signature(Slice(config))
        super().__init__({"i": In(slices), "waits": In(1), "o": Out(slices).array(config.cdus)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        valid, ready, hidden = Signal(), Signal(), Signal()
        held: Any = Signal(self.i.payload.shape(), reset_less=True)
        m.d.comb += self.i.ready.eq(~valid | ready)
        m.d.sync += hidden.eq(self.i.valid & self.i.ready & self.waits)
        with m.If(self.i.ready):
            m.d.sync += [valid.eq(self.i.valid), held.eq(self.i.payload)]

        zeroed = Signal(8 * self.size)
        m.d.comb += zeroed.eq(
            Cat(Mux(held["count"] > place, held["data"].word_select(place, 8), 0) for place in range(self.size))
        )
        turn = round_robin(m, self.cdus, valid & ready & held["ends"], "turn")
        for lane, sink in enumerate(self.o):
            mine = turn == lane
            m.d.comb += [
                sink.valid.eq(valid & ~hidden & mine),
                sink.payload.eq(held),
                sink.payload["data"].eq(zeroed),
            ]
            with m.If(mine):
                m.d.comb += ready.eq(sink.ready & ~hidden)
        return m
