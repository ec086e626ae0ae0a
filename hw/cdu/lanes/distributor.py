"""Distributor: deals out the blocks that come in words of P rows to N CDUs (JPEG-ACT, "CDU")."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.affine import SEED_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE

from cdu.parts.round_robin import round_robin
from cdu.words import lane_row, packer_word


def lane_word(config: CduConfig) -> data.StructLayout:
    """A word of a block (:func:`~cdu.words.packer_word`) with what its rows have besides."""
    row, word = ({name: field.shape for name, field in layout} for layout in (lane_row(config), packer_word(config)))
    return data.StructLayout(word | {name: shape for name, shape in row.items() if name not in word})


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
        Stream of words of the layout that :func:`lane_word` gives.
    o
        Stream of rows (:func:`~cdu.words.lane_row`).

    Latency 1 cycle, a row per cycle. With several words a word comes in the cycle after the one in which the last row of the
    word in its place has left at the earliest, so that ``ready`` of ``o`` does not reach that of ``i``; with one word in the
    same cycle.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 1

    def __init__(self, config: CduConfig, words: int) -> None:
        self.words, self.beats = words, config.port_beats
        row = lane_row(config)
        self.common = [name for name, _ in row if name not in ("values", "ends")]  # to all rows of a word
        super().__init__({"i": In(stream.Signature(lane_word(config))), "o": Out(stream.Signature(row))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words: Any = Signal(data.ArrayLayout(self.i.payload.shape(), self.words), reset_less=True)
        held = Signal(self.words)
        takes = Signal()
        done = Signal()
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
            *(self.o.payload[name].eq(word[name]) for name in self.common),
            done.eq(self.o.valid & self.o.ready & final),
            self.i.ready.eq(~held.bit_select(entering, 1) | (done if self.words == 1 else 0)),
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
        Stream of :class:`~cdu.words.BlockWord` (:func:`~cdu.words.packer_word`).
    seeds
        Stream of seeds, one per job: a job takes its own with its last block and does not begin without it (only with modes
        that round at random).
    o
        N streams of :class:`~cdu.words.BlockRow` (:func:`~cdu.words.lane_row`).

    Latency 1 cycle, none with P = 1. A word per cycle as long as its lane has room.
    """

    i: stream.Interface
    seeds: stream.Interface
    o: list[stream.Interface]

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.draws = config.draws
        super().__init__(
            {
                "i": In(stream.Signature(packer_word(config))),
                **({"seeds": In(stream.Signature(SEED_BITS))} if self.draws else {}),
                "o": Out(stream.Signature(lane_row(config))).array(config.cdus),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count, beats = self.config.cdus, self.config.port_beats
        offered: Any = Signal(lane_word(self.config))
        m.d.comb += [offered[name].eq(self.i.payload[name]) for name, _ in self.i.payload.shape()]
        block_done = self.i.valid & self.i.ready & self.i.payload["ends"]
        turn = round_robin(m, count, block_done, "turn")
        there: Value = Const(1, 1)
        taken = Signal()
        if self.draws:
            there = self.seeds.valid
            number = Signal.like(offered["number"])
            job_done = block_done & self.i.payload["tag"]["last"]
            with m.If(block_done):
                m.d.sync += number.eq(Mux(job_done, 0, number + 1))
            m.d.comb += [offered["seed"].eq(self.seeds.payload), offered["number"].eq(number), self.seeds.ready.eq(job_done)]
        m.d.comb += self.i.ready.eq(taken & there)
        for lane in range(count):
            mine = turn == lane
            if beats == 1:
                target = self.o[lane]
                for name, _ in target.payload.shape():
                    m.d.comb += target.payload[name].eq(offered["values"][0] if name == "values" else offered[name])
            else:
                serializer = RowSerializer(self.config, 1 if count == 1 else BLOCK_SIDE // beats)
                m.submodules[f"lane{lane}"] = serializer
                connect(m, serializer.o, flipped(self.o[lane]))
                m.d.comb += serializer.i.payload.eq(offered)
                target = serializer.i
            m.d.comb += target.valid.eq(self.i.valid & there & mine)
            with m.If(mine):
                m.d.comb += taken.eq(target.ready)
        return m
