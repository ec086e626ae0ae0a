"""Distributor: deals out the blocks that come in words of P rows to N CDUs (JPEG-ACT, "CDU")."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE

from cdu.turns import round_robin
from cdu.words import BlockRow, BlockWord


class RowSerializer(wiring.Component):
    """Words of up to P rows to single rows.

    Parameters
    ----------
    config
        P.
    words
        Words that are kept.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.BlockWord`.
    o
        Stream of :class:`~cdu.words.BlockRow`.

    Latency 1 cycle, a row per cycle. A word may come in the cycle in which the last row of the word in its place leaves.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 1

    def __init__(self, config: CduConfig, words: int) -> None:
        self.words, self.beats = words, config.port_beats
        super().__init__({"i": In(stream.Signature(BlockWord(config))), "o": Out(stream.Signature(BlockRow()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words: Any = Signal(data.ArrayLayout(self.i.payload.shape(), self.words), reset_less=True)
        held = Signal(self.words)
        takes, done = Signal(), Signal()
        entering = round_robin(m, self.words, takes, "entering")
        leaving = round_robin(m, self.words, done, "leaving")

        word: Any = Signal(self.i.payload.shape())
        row = Signal(range(self.beats))
        final = Signal()
        m.d.comb += [
            word.eq(words[leaving]),
            final.eq(row + 1 == word["count"]),
            self.o.valid.eq(held.bit_select(leaving, 1)),
            self.o.payload["values"].eq(word["values"][row]),
            self.o.payload["ends"].eq(word["ends"] & final),
            self.o.payload["tag"].eq(word["tag"]),
            done.eq(self.o.valid & self.o.ready & final),
            self.i.ready.eq(~held.bit_select(entering, 1) | (done & (entering == leaving))),
            takes.eq(self.i.valid & self.i.ready),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += row.eq(Mux(final, 0, row + 1))
        with m.If(done):
            m.d.sync += held.bit_select(leaving, 1).eq(0)
        with m.If(takes):
            m.d.sync += [words[entering].eq(self.i.payload), held.bit_select(entering, 1).eq(1)]
        return m


class Distributor(wiring.Component):
    """Hands blocks to N lanes in turn; every lane takes them row by row.

    A block comes in 8 / P cycles and takes 8 in its lane, which is why a lane keeps up to a block: with N = P all lanes then
    run at a row per cycle.

    Parameters
    ----------
    config
        N and P.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.BlockWord`.
    o
        N streams of :class:`~cdu.words.BlockRow`.

    Latency 1 cycle, none with P = 1. A word per cycle as long as its lane has room.
    """

    i: stream.Interface
    o: list[stream.Interface]

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(BlockWord(config))),
                "o": Out(stream.Signature(BlockRow())).array(config.cdus),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count, beats = self.config.cdus, self.config.port_beats
        turn = round_robin(m, count, self.i.valid & self.i.ready & self.i.payload["ends"], "turn")
        for lane in range(count):
            mine = turn == lane
            if beats == 1:
                word, row = self.i, self.o[lane]
                m.d.comb += [
                    row.payload["values"].eq(word.payload["values"][0]),
                    row.payload["ends"].eq(word.payload["ends"]),
                    row.payload["tag"].eq(word.payload["tag"]),
                ]
                target = row
            else:
                serializer = RowSerializer(self.config, 1 if count == 1 else BLOCK_SIDE // beats)
                m.submodules[f"lane{lane}"] = serializer
                connect(m, serializer.o, flipped(self.o[lane]))
                m.d.comb += serializer.i.payload.eq(self.i.payload)
                target = serializer.i
            m.d.comb += target.valid.eq(self.i.valid & mine)
            with m.If(mine):
                m.d.comb += self.i.ready.eq(target.ready)
        return m
