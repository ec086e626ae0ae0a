"""Collector, which packs the blocks of N CDUs into words without gaps (JPEG-ACT, "collector")."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import latencies
from cdu_spec.config import CduConfig

from cdu.parts.barrel import rotate_left, wrapped
from cdu.parts.round_robin import round_robin
from cdu.parts.streams import registered
from cdu.words import PackedWord, Slice


class Collector(wiring.Component):
    """Take blocks from N lanes in turn, a slice per cycle, and append their bytes.

    A slice is rotated to its place in a ring as wide as itself (rounded up to a power of two); in the next cycle it is
    appended to the word. Bytes that do not fit wait there for the next word. The slices of mode mx bypass the lanes.

    Parameters
    ----------
    config
        N, S, M and ``modes``.

    Ports
    -----
    i
        N streams of :class:`~cdu.words.Slice`.
    mx, turns
        A stream of :class:`~cdu.words.Slice` past the lanes, and one of a bit per job: whether its slices come from there. It
        is taken with the last slice of the job (only with mode mx).
    o
        Stream of :class:`~cdu.words.PackedWord`: full words, except for the last one of a job (1 to M bytes). A job begins
        with a new word.

    Latency: 2 cycles. One slice and one word per cycle; the last slice of a job takes two if it does not fit the last word.
    """

    i: list[stream.Interface]
    mx: stream.Interface
    turns: stream.Interface
    o: stream.Interface

    latency = latencies.COLLECTOR

    def __init__(self, config: CduConfig) -> None:
        self.count, self.slice_bytes, self.word_bytes = config.cdus, config.slice_bytes, config.packed_bytes
        self.has_mx = config.has_mx
        slices = stream.Signature(Slice(config))
        past = {"mx": In(slices), "turns": In(stream.Signature(1))} if config.has_mx else {}
        super().__init__(
            {
                "i": In(slices).array(config.cdus),
                **past,
                "o": Out(stream.Signature(PackedWord(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = self.word_bytes
        ring_bytes = 1 << (self.slice_bytes - 1).bit_length()
        advance = Signal()
        flush = Signal()
        move = ~self.o.valid | self.o.ready  # the word may change

        # 1: the slice of the current lane, rotated to its place
        part: Any = Signal(self.i[0].payload.shape())
        offered = Signal()
        lane_ends, lanes_go = offered & advance & part["ends"], advance
        if self.has_mx:
            past, lanes = self.turns.valid & self.turns.payload, self.turns.valid & ~self.turns.payload
            lane_ends, lanes_go = lane_ends & lanes, advance & lanes
        turn = round_robin(m, self.count, lane_ends, "turn")
        for lane, source in enumerate(self.i):
            with m.If(turn == lane):
                m.d.comb += [part.eq(source.payload), offered.eq(source.valid), source.ready.eq(lanes_go)]
        if self.has_mx:
            with m.If(past):
                m.d.comb += [part.eq(self.mx.payload), offered.eq(self.mx.valid), self.mx.ready.eq(advance)]
            with m.Elif(~lanes):
                m.d.comb += offered.eq(0)
        level = Signal(range(size))
        total = Signal(range(2 * size))
        ends_job = part["ends"] & part["tag"]["last"]
        m.d.comb += total.eq(level + part["count"])
        if self.has_mx:
            m.d.comb += self.turns.ready.eq(offered & advance & ends_job)
        with m.If(advance & offered):
            m.d.sync += level.eq(Mux(ends_job, 0, total[: len(level)]))
        ring_bits = (ring_bytes - 1).bit_length()
        padded = Cat(part["data"], Const(0, 8 * (ring_bytes - self.slice_bytes)))
        turned = rotate_left(m, padded, level[:ring_bits], "turned")
        ring = registered(m, advance, turned, "ring")
        place = registered(m, advance, level, "place")
        end = registered(m, advance, total, "end")
        valid = Signal()
        last = Signal()
        with m.If(advance):
            m.d.sync += [valid.eq(offered), last.eq(ends_job)]

        # 2: appended to the word; bytes that wrap round begin the next one
        place_in_ring, granule = place[:ring_bits], place[ring_bits:]
        granules = size // ring_bytes
        wraps = wrapped(place_in_ring, ring_bytes)
        uses = valid & ~flush
        here = [uses & (granule == index) for index in range(granules)]
        appended = Cat(
            *(
                _where(
                    ring, [(here[index] & ~wraps[k]) | (here[index - 1] & wraps[k] if index else 0) for k in range(ring_bytes)]
                )
                for index in range(granules)
            )
        )
        rest = _where(ring, [here[-1] & wraps[k] for k in range(self.slice_bytes - 1)])
        spilled = Signal(8 * (self.slice_bytes - 1))  # a slice of which at least a byte was in the word before
        spilled_count = Signal(range(size))
        bits = Signal(8 * size)
        word = self.o.payload
        fills = end >= size
        m.d.comb += [advance.eq(move & ~flush), word["data"].eq(bits)]
        with m.If(move):
            m.d.sync += [
                bits.eq(Mux(self.o.valid, spilled, bits) | appended),
                spilled.eq(rest),
                spilled_count.eq(end[: len(level)]),
                self.o.valid.eq(flush | (valid & (fills | last))),
                word["count"].eq(Mux(flush, spilled_count, Mux(fills, size, end[: len(level)]))),
                word["last"].eq(flush | (last & (end <= size))),
                flush.eq(uses & last & (end > size)),
            ]
        return m


def _where(ring: Value, chosen: list[Value | int]) -> Value:
    """Return the bytes of a ring that are chosen, zeros in place of the others."""
    return Cat(*(Mux(choice, ring.word_select(place, 8), 0) for place, choice in enumerate(chosen)))
