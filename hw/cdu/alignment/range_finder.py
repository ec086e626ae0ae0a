"""Range finder of the affine modes with ranges (docs/reference/bitstream.md, "Affine modes")."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec import latencies
from cdu_spec.affine import BASE_BITS, CODE_BITS, MANTISSA_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_VALUES, TILE_BLOCKS
from cdu_spec.modes import Mode

from cdu.alignment.block_statistics import BlockStatistics
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.streams import pipeline, registered
from cdu.words import Range, TileWord

#: Number of ranges that can wait for their blocks to leave the alignment buffer.
_RANGES_WAITING = 4


def _found(config: CduConfig) -> dict[str, Any]:
    """Return the fields of a found range; mode division adds the least and greatest value, which complete its statistics."""
    ends = {"least": signed(BASE_BITS), "most": signed(BASE_BITS)} if Mode.DIVISION in config.built_modes else {}
    return {"range": Range(), **ends}


class BlockRange(data.StructLayout):
    """The ``range`` of a block, and whether the block ``heads`` a group that has it in common.

    With mode division also ``least`` and ``most``, which only blocks of that mode need.
    """

    def __init__(self, config: CduConfig) -> None:
        super().__init__({**_found(config), "heads": 1})


class _GroupRange(data.StructLayout):
    """Range that the next ``blocks`` blocks have in common."""

    def __init__(self, config: CduConfig) -> None:
        super().__init__({**_found(config), "blocks": range(TILE_BLOCKS + 1)})


class RangeFinder(wiring.Component):
    """Find the range of each block on its way to the alignment buffer; words pass, ranges come out beside them.

    Parameters
    ----------
    config
        P and ``modes``, one of which has ranges.

    Ports
    -----
    i, o
        Streams of :class:`~cdu.words.TileWord` of 16-bit values: words pass unchanged.
    ranges
        Stream of :class:`BlockRange`: one per block of the modes division and actnn, in the order of the blocks.

    Latency of the words: 3 cycles with P = 1, else 4. The range of a tile's first block is valid 2 cycles after the tile's
    last word has left, the ranges of its other blocks follow in consecutive cycles. One word per cycle.
    """

    i: stream.Interface
    o: stream.Interface
    ranges: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        words = stream.Signature(TileWord(config, BASE_BITS))
        super().__init__({"i": In(words), "o": Out(words), "ranges": Out(stream.Signature(BlockRange(config)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.statistics = statistics = BlockStatistics(self.config)
        m.submodules.waiting = waiting = StreamFifo(_GroupRange(self.config), _RANGES_WAITING)
        connect(m, flipped(self.i), statistics.i)
        # Words wait so that a range is found before its block can leave the alignment buffer.
        advance = pipeline(m, statistics.o, self.o, latencies.RANGE)
        word = Value.cast(statistics.o.payload)
        for stage in range(latencies.RANGE):
            word = registered(m, advance, word, f"word{stage + 1}")
        m.d.comb += self.o.payload.eq(word)

        self._find(m, statistics.found, waiting.i)
        group: Any = waiting.o.payload
        block = Signal(range(TILE_BLOCKS))  # of the group
        final = block == group.blocks - 1
        m.d.comb += [
            self.ranges.valid.eq(waiting.o.valid),
            *(self.ranges.payload[name].eq(group[name]) for name in _found(self.config)),
            self.ranges.payload.heads.eq(block == 0),
            waiting.o.ready.eq(self.ranges.ready & final),
        ]
        with m.If(self.ranges.valid & self.ranges.ready):
            m.d.sync += block.eq(Mux(final, 0, block + 1))
        return m

    def _find(self, m: Module, found: stream.Interface, o: stream.Interface) -> None:
        """Compute ranges from statistics in three steps with two register stages in between."""
        statistics: Any = found.payload
        values = statistics["values"]
        advance = pipeline(m, found, o, 2)
        bits_log2 = statistics.quantizer.bits_log2

        # 1: lowest value and extent of the range; a step of d covers it if (extent - 1) // B < d, so that d - 1 is that
        # quotient.
        beyond = Signal(signed(BASE_BITS + 2))
        extent = Signal(BASE_BITS)  # less 1, but not below 0
        low = values.least
        if Mode.DIVISION in self.config.built_modes:
            by_channel = (statistics.mode == Mode.DIVISION) & ~statistics.quantizer.block_range
            mean = (values.total + BLOCK_VALUES // 2) >> (BLOCK_VALUES - 1).bit_length()
            low = Mux(by_channel, mean, low)
        m.d.comb += [beyond.eq(values.most - values.least - 1), extent.eq(Mux(beyond[-1], 0, beyond))]
        extent1 = registered(m, advance, extent, "extent1")
        low1 = registered(m, advance, low[:BASE_BITS], "low1")
        bits1 = registered(m, advance, bits_log2, "bits1")
        blocks1 = registered(m, advance, statistics.blocks, "blocks1")

        # 2: extent divided by the greatest code B
        quotient = Signal(BASE_BITS)
        quotients = [_quotient(m, extent1, bits) for bits in CODE_BITS]
        with m.Switch(bits1):
            for number, of_bits in enumerate(quotients):
                with m.Case(number):
                    m.d.comb += quotient.eq(of_bits)
        quotient2 = registered(m, advance, quotient, "quotient2")
        low2 = registered(m, advance, low1, "low2")
        blocks2 = registered(m, advance, blocks1, "blocks2")

        # 3: mantissa and exponent of d from d - 1, rounded up
        exponent = Signal.like(o.payload.range.exponent)
        leading = Signal(MANTISSA_BITS)
        m.d.comb += leading.eq(quotient2[:MANTISSA_BITS])
        for place in range(MANTISSA_BITS, BASE_BITS):  # the highest set bit wins
            with m.If(quotient2[place]):
                shift = place + 1 - MANTISSA_BITS
                m.d.comb += [exponent.eq(shift), leading.eq(quotient2[shift : shift + MANTISSA_BITS])]
        overflows = leading.all()
        mantissa = Mux(overflows, 1 << (MANTISSA_BITS - 1), leading + 1)[:MANTISSA_BITS]
        m.d.comb += [
            o.payload.range.eq(Cat(low2, mantissa, (exponent + overflows)[: len(exponent)])),
            o.payload.blocks.eq(blocks2),
        ]
        if Mode.DIVISION in self.config.built_modes:
            for end in ("least", "most"):
                before = registered(m, advance, values[end], f"{end}1")
                m.d.comb += o.payload[end].eq(registered(m, advance, before, f"{end}2"))


def _quotient(m: Module, extent: Value, bits: int) -> Value:
    """Return ``extent // (2**bits - 1)`` for 0 to 65534: a product with the reciprocal, made of shifts and additions."""
    if bits == 1:
        return extent
    if bits == 8:
        return (extent + (extent >> bits) + 1) >> bits
    # 10 * 0x1111 + 1 and 8 * 0x1111 + 1 are 2**17 / 3 and 2**19 / 15, rounded up.
    pairs = Signal(len(extent) + 5, name=f"times_0x11_{bits}")
    fours = Signal(len(pairs) + 8, name=f"times_0x1111_{bits}")
    m.d.comb += [pairs.eq(extent + (extent << 4)), fours.eq(pairs + (pairs << 8))]
    factor, shift = {2: (10, 17), 4: (8, 19)}[bits]
    return (fours * factor + extent) >> shift
