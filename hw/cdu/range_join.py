"""Joins the blocks behind the alignment buffer with their ranges."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig

from cdu.lane_words import packer_word
from cdu.modes import RANGED_MODES, is_one_of
from cdu.range_finder import BlockRange
from cdu.words import BlockWord


class RangeJoin(wiring.Component):
    """Gives every word of a block the block's range.

    Parameters
    ----------
    config
        P and ``modes``, one of which has ranges.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.BlockWord` of 16-bit values, ``heads`` not set.
    ranges
        Stream of :class:`~cdu.range_finder.BlockRange`: one per block of a mode with ranges, in the order of the blocks.
    o
        Stream of :class:`~cdu.words.BlockWord` with ranges: the words of ``i``; ranges are undefined in the other modes.

    No latency, a word per cycle.
    """

    i: stream.Interface
    ranges: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.modes = [mode for mode in RANGED_MODES if mode in config.built_modes]
        super().__init__(
            {
                "i": In(stream.Signature(BlockWord(config, config.value_bits))),
                "ranges": In(stream.Signature(BlockRange())),
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
        return m
