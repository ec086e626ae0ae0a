"""Deals the slices of blocks out to N lanes, a block to each in turn."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode

from cdu.parts.round_robin import round_robin
from cdu.words import Slice


class SliceDealer(wiring.Component):
    """Two slices in registers, the first one shown to the lane whose turn it is: ``ready`` of a lane does not reach ``i``.

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
    mx
        Stream of :class:`~cdu.words.Slice`: those of mode mx, which no lane has (only with that mode).

    Latency 1 cycle, 2 with ``waits``; a slice per cycle.
    """

    i: stream.Interface
    waits: Signal
    o: list[stream.Interface]
    mx: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.cdus, self.size, self.has_mx = config.cdus, config.slice_bytes, config.has_mx
        slices = stream.Signature(Slice(config))
        past = {"mx": Out(slices)} if config.has_mx else {}
        super().__init__({"i": In(slices), "waits": In(1), "o": Out(slices).array(config.cdus), **past})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        valid = Signal()
        ready = Signal()
        hidden = Signal()
        waiting = Signal()
        held: Any = Signal(self.i.payload.shape(), reset_less=True)
        spare: Any = Signal.like(held, reset_less=True)
        free = Signal()
        takes = Signal()
        m.d.comb += [self.i.ready.eq(~waiting), takes.eq(self.i.valid & self.i.ready), free.eq(~valid | ready)]
        m.d.sync += hidden.eq(takes & free & self.waits)
        with m.If(free):
            m.d.sync += [
                valid.eq(waiting | takes),
                waiting.eq(0),
                held.eq(Mux(waiting, spare.as_value(), self.i.payload.as_value())),
            ]
        with m.Elif(takes):
            m.d.sync += [waiting.eq(1), spare.eq(self.i.payload)]

        zeroed = Signal(8 * self.size)
        m.d.comb += zeroed.eq(
            Cat(Mux(held["count"] > place, held["data"].word_select(place, 8), 0) for place in range(self.size))
        )
        lane_ends = valid & ready & held["ends"]
        if self.has_mx:
            past = held["tag"]["mode"] == Mode.MX
            lane_ends &= ~past
        turn = round_robin(m, self.cdus, lane_ends, "turn")
        ways = [(sink, turn == lane) for lane, sink in enumerate(self.o)]
        if self.has_mx:
            ways = [*((sink, mine & ~past) for sink, mine in ways), (self.mx, past)]
        for sink, mine in ways:
            m.d.comb += [
                sink.valid.eq(valid & ~hidden & mine),
                sink.payload.eq(held),
                sink.payload["data"].eq(zeroed),
            ]
            with m.If(mine):
                m.d.comb += ready.eq(sink.ready & ~hidden)
        return m
