"""Gatherer: the blocks of N CDUs in turn, as words of P rows; the inverse of :class:`~cdu.lanes.distributor.Distributor`."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE

from cdu.parts.round_robin import round_robin
from cdu.words import BlockRow, BlockWord


class RowAssembler(wiring.Component):
    """Rows to words of up to P rows of one block.

    Parameters
    ----------
    config
        P.
    words
        Words that are kept.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.BlockRow`, with ranges where a mode that has them is built in.
    o
        Stream of :class:`~cdu.words.BlockWord`, likewise. Rows behind ``count`` are undefined.

    Latency 1 cycle after the last row of a word, a row per cycle. With several words a row comes in the cycle after the one in
    which the word in its place has left at the earliest, so that ``ready`` of ``o`` does not reach that of ``i``; with one
    word in the same cycle.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig, words: int) -> None:
        self.words, self.beats = words, config.port_beats
        self.ranged = config.has_ranges
        row, word = BlockRow(ranged=self.ranged), BlockWord(config, ranged=self.ranged)
        super().__init__({"i": In(stream.Signature(row)), "o": Out(stream.Signature(word))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words: Any = Signal(data.ArrayLayout(self.o.payload.shape(), self.words), reset_less=True)
        held = Signal(self.words)
        takes = Signal()
        done = Signal()
        row = Signal(range(self.beats))
        completes = self.i.payload["ends"] | (row == self.beats - 1)
        entering = round_robin(m, self.words, takes & completes, "entering")
        leaving = round_robin(m, self.words, done, "leaving")
        m.d.comb += [
            takes.eq(self.i.valid & self.i.ready),
            done.eq(self.o.valid & self.o.ready),
            self.i.ready.eq(~held.bit_select(entering, 1) | (done if self.words == 1 else 0)),
            self.o.valid.eq(held.bit_select(leaving, 1)),
            self.o.payload.eq(words[leaving]),
        ]
        with m.If(done):
            m.d.sync += held.bit_select(leaving, 1).eq(0)
        with m.If(takes):
            word = words[entering]
            m.d.sync += [
                word["values"][row].eq(self.i.payload["values"]),
                word["count"].eq(row + 1),
                word["ends"].eq(self.i.payload["ends"]),
                word["tag"].eq(self.i.payload["tag"]),
                row.eq(Mux(completes, 0, row + 1)),
            ]
            if self.ranged:
                m.d.sync += word["range"].eq(self.i.payload["range"])
            with m.If(completes):
                m.d.sync += held.bit_select(entering, 1).eq(1)
        return m


class Gatherer(wiring.Component):
    """Takes blocks from N lanes in turn.

    All lanes work at a row per cycle, but a block leaves in 8 / P cycles, which is why a lane keeps up to a block: with N = P
    all lanes then run at a row per cycle.

    Parameters
    ----------
    config
        N and P.

    Ports
    -----
    i
        N streams of :class:`~cdu.words.BlockRow`, with ranges where a mode that has them is built in.
    o
        Stream of :class:`~cdu.words.BlockWord`, likewise. Rows behind ``count`` are undefined.

    A word per cycle; latency 1 cycle after its last row, none with P = 1.
    """

    i: list[stream.Interface]
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.ranged = config.has_ranges
        row, word = BlockRow(ranged=self.ranged), BlockWord(config, ranged=self.ranged)
        super().__init__({"i": In(stream.Signature(row)).array(config.cdus), "o": Out(stream.Signature(word))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count, beats = self.config.cdus, self.config.port_beats
        turn = round_robin(m, count, self.o.valid & self.o.ready & self.o.payload["ends"], "turn")
        for lane in range(count):
            if beats == 1:
                source = self.i[lane]
                fields = {"count": 1}
            else:
                assembler = RowAssembler(self.config, 1 if count == 1 else BLOCK_SIDE // beats)
                m.submodules[f"lane{lane}"] = assembler
                connect(m, flipped(self.i[lane]), assembler.i)
                source = assembler.o
                fields = {}
            with m.If(turn == lane):
                m.d.comb += [self.o.valid.eq(source.valid), source.ready.eq(self.o.ready)]
                for name, _ in self.o.payload.shape():
                    m.d.comb += self.o.payload[name].eq(fields[name] if name in fields else source.payload[name])
        return m
