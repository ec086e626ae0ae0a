"""Joins the blocks behind the alignment buffer with their ranges, and puts statistics in the place of values."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.geometry import VALUE_BITS
from cdu_spec.modes import STATISTICS_BYTES, Mode

from cdu.alignment.range_finder import BlockRange
from cdu.words import BlockWord, gives_statistics, is_one_of, packer_word


class RangeJoin(wiring.Component):
    """Gives every word of a block the block's range; in words of blocks that leave as statistics these replace row 0.

    Parameters
    ----------
    config
        P and ``modes``, one of which has ranges.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.BlockWord` of 16-bit values, ``heads`` not set.
    ranges
        Stream of :class:`~cdu.alignment.range_finder.BlockRange`: one per block of a mode with ranges, in the order of the
        blocks.
    o
        Stream of :class:`~cdu.words.BlockWord` with ranges: the words of ``i``; ranges are undefined in the other modes. Of
        statistics the first 6 values of row 0 are the bytes: mean, least, greatest value.

    No latency, a word per cycle.
    """

    i: stream.Interface
    ranges: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.modes = [mode for mode in config.built_modes if mode.has_ranges]
        super().__init__(
            {
                "i": In(stream.Signature(BlockWord(config, config.value_bits))),
                "ranges": In(stream.Signature(BlockRange(config))),
                "o": Out(stream.Signature(packer_word(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word, found = self.i.payload, self.ranges.payload
        ranged = is_one_of(word["tag"]["mode"], self.modes)
        there = ~ranged | self.ranges.valid
        m.d.comb += [self.o.payload[name].eq(word[name]) for name, _ in word.shape()]
        m.d.comb += [
            self.o.payload["range"].eq(found["range"]),
            self.o.payload["tag"]["heads"].eq(ranged & found["heads"]),
            self.o.valid.eq(self.i.valid & there),
            self.i.ready.eq(self.o.ready & there),
            self.ranges.ready.eq(self.i.valid & ranged & word["ends"] & self.o.ready),
        ]
        if Mode.DIVISION in self.modes:
            statistics = Cat(found["range"]["low"], found["least"], found["most"])
            replaced = gives_statistics(self.config, word["tag"])
            for place in range(STATISTICS_BYTES):
                value = word["values"][0][place]
                byte = statistics.word_select(place, VALUE_BITS)
                m.d.comb += self.o.payload["values"][0][place].eq(Mux(replaced, byte, value.as_unsigned()))
        return m
