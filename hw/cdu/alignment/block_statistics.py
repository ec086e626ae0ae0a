"""Sum, smallest and greatest value of each block on its way to the alignment buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import latencies
from cdu_spec.affine import BASE_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES, TILE_BLOCKS
from cdu_spec.modes import Mode

from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.streams import pipeline, registered
from cdu.words import Quantizer, TileWord, is_one_of

#: Bits by which the sum of 8 values is wider than a value.
_ROW_GROWTH = (LANES - 1).bit_length()
_BLOCK_GROWTH = (BLOCK_VALUES - 1).bit_length()
#: Number of tiles whose statistics can wait until they are handed out block by block.
_TILES_WAITING = 2


class Statistics(data.StructLayout):
    """The smallest value ``least``, the greatest value ``most`` and, if a built mode needs a mean, the sum ``total``."""

    def __init__(self, config: CduConfig, growth: int = _BLOCK_GROWTH) -> None:
        value = signed(BASE_BITS)
        total = {"total": signed(BASE_BITS + growth)} if Mode.DIVISION in config.built_modes else {}
        super().__init__({"least": value, "most": value, **total})


class FoundStatistics(data.StructLayout):
    """Statistics that ``blocks`` blocks (one, or all of a tile) have in common, with their ``mode`` and ``quantizer``."""

    def __init__(self, config: CduConfig) -> None:
        super().__init__(
            {"values": Statistics(config), "blocks": range(TILE_BLOCKS + 1), "mode": Mode, "quantizer": Quantizer()}
        )


class _TileStatistics(data.StructLayout):
    """Statistics of all blocks of a tile."""

    def __init__(self, config: CduConfig) -> None:
        super().__init__(
            {
                "values": data.ArrayLayout(Statistics(config), TILE_BLOCKS),
                "blocks": range(TILE_BLOCKS + 1),
                "mode": Mode,
                "quantizer": Quantizer(),
            }
        )


class BlockStatistics(wiring.Component):
    """Find the statistics of tiles that pass row by row, P beats of 8 values per cycle.

    In mode division each block has its own statistics; in mode actnn all blocks of a tile share theirs. Other modes have no
    statistics.

    Parameters
    ----------
    config
        P and ``modes``, one of which has ranges.

    Ports
    -----
    i, o
        Streams of :class:`~cdu.words.TileWord` of 16-bit values: words pass unchanged.
    found
        Stream of :class:`FoundStatistics` in the order of the blocks. The last word of a tile waits while there is no room.
        ``ready`` must not depend on ``valid``, nor that of ``o``.

    Latency of the words 1 cycle with P = 1, else 2; of the statistics 1 more than that of the last word of the block (of the
    tile with P above 1). A word per cycle, a block per cycle.
    """

    i: stream.Interface
    o: stream.Interface
    found: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.beats = config.port_beats
        self.has_mean = Mode.DIVISION in config.built_modes
        self.has_groups = Mode.ACTNN in config.built_modes
        self.latency = latencies.statistics(config)
        words = stream.Signature(TileWord(config, BASE_BITS))
        super().__init__({"i": In(words), "o": Out(words), "found": Out(stream.Signature(FoundStatistics(config)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        passed = stream.Signature(TileWord(self.config, BASE_BITS)).create(path=("passed",))
        advance = pipeline(m, self.i, passed, self.latency)
        stages: list[Any] = [self.i.payload]
        for stage in range(self.latency):
            value = registered(m, advance, Value.cast(stages[-1]), f"word{stage + 1}")
            stages.append(data.View(self.i.payload.shape(), value))
        m.d.comb += passed.payload.eq(stages[-1])

        # A word that completes a block or a group waits until there is room for its statistics.
        completes = Signal()
        room = Signal()
        m.d.comb += [
            self.o.valid.eq(passed.valid & (room | ~completes)),
            self.o.payload.eq(passed.payload),
            passed.ready.eq(self.o.ready & (room | ~completes)),
        ]
        beats = [self._of_beat(m, advance, values, lane) for lane, values in enumerate(self.i.payload["values"])]
        if self.beats == 1:
            self._one_by_one(m, passed, completes, room, beats[0])
        else:
            self._side_by_side(m, advance, stages[1], passed, completes, room, beats)
        return m

    def _of_beat(self, m: Module, advance: Value, values: Any, lane: int) -> Any:
        """Return the statistics of a beat, in registers."""
        # One comparison of each pair serves both ends.
        pairs = []
        for number in range(0, LANES, 2):
            one, other = values[number], values[number + 1]
            above = one > other
            pairs.append((Mux(above, other, one).as_signed(), Mux(above, one, other).as_signed()))
        totals: list[Value] = [values[number] for number in range(LANES)]
        found: Any = Signal(Statistics(self.config, _ROW_GROWTH), name=f"beat{lane}")
        m.d.comb += [
            found.least.eq(_tree([least for least, _ in pairs], _smaller)),
            found.most.eq(_tree([most for _, most in pairs], _greater)),
        ]
        if self.has_mean:
            m.d.comb += found.total.eq(_tree(totals, lambda one, other: one + other))
        return data.View(found.shape(), registered(m, advance, Value.cast(found), f"beat{lane}_register"))

    def _both(self, m: Module, one: Any, other: Any, name: str) -> Any:
        """Return the statistics of the union of two sets of values; the total is only as wide as the sum can become."""
        growth = _BLOCK_GROWTH
        if self.has_mean:
            total = one.total + other.total
            growth = min(len(total) - BASE_BITS, growth)
        result: Any = Signal(Statistics(self.config, growth), name=name)
        m.d.comb += [
            result.least.eq(_smaller(one.least, other.least)),
            result.most.eq(_greater(one.most, other.most)),
        ]
        if self.has_mean:
            m.d.comb += result.total.eq(total)
        return result

    def _grouped(self, mode: Value) -> Value:
        """Return whether all blocks of a tile share their statistics (mode actnn)."""
        return (mode == Mode.ACTNN) if self.has_groups else Value.cast(0)[0]

    def _ranged(self, mode: Value) -> Value:
        return is_one_of(mode, [ranged for ranged in self.config.built_modes if ranged.has_ranges])

    def _one_by_one(self, m: Module, words: stream.Interface, completes: Signal, room: Signal, beat: Any) -> None:
        """Handle words of one beat of one block; the blocks of a tile are complete one after the other in its last row."""
        word: Any = words.payload
        block = Signal(range(TILE_BLOCKS))
        row = Signal(range(BLOCK_SIDE))
        grouped = self._grouped(word.tag.mode)
        index = Signal.like(block)
        fresh = Signal()
        known: Any = Signal(data.ArrayLayout(Statistics(self.config), TILE_BLOCKS), reset_less=True)
        wraps = block == word.blocks - 1
        taken = words.valid & words.ready
        own: Any = Signal(Statistics(self.config), name="own")
        m.d.comb += _taken_over(own, beat)
        both = self._both(m, known[index], own, "both")
        result: Any = Signal(Statistics(self.config), name="result")
        m.d.comb += [
            index.eq(Mux(grouped, 0, block)),
            fresh.eq((row == 0) & (~grouped | (block == 0))),
            result.eq(Mux(fresh, own, both)),
            completes.eq(self._ranged(word.tag.mode) & Mux(grouped, word.ends, row == BLOCK_SIDE - 1)),
        ]
        with m.If(taken):
            m.d.sync += [
                known[index].eq(result),
                block.eq(Mux(wraps | word.ends, 0, block + 1)),
                row.eq(Mux(word.ends, 0, row + wraps)),
            ]
        finished = self.found.signature.create(path=("finished",))
        advance = pipeline(m, finished, self.found, 1)
        m.d.comb += [
            room.eq(advance),
            finished.valid.eq(words.valid & completes & self.o.ready),
            finished.payload["values"].eq(result),
            finished.payload.blocks.eq(Mux(grouped, word.blocks, 1)),
            finished.payload.mode.eq(word.tag.mode),
            finished.payload.quantizer.eq(word.tag.how.affine),
        ]
        m.d.comb += self.found.payload.eq(registered(m, advance, finished.payload.as_value(), "found_register"))

    def _side_by_side(
        self,
        m: Module,
        advance: Value,
        before: Any,
        words: stream.Interface,
        completes: Signal,
        room: Signal,
        beats: Sequence[Any],
    ) -> None:
        """Handle words with beats of several blocks, or several beats of one; all are complete with the tile's last word."""
        word: Any = words.payload
        entering = Signal(range(BLOCK_SIDE * TILE_BLOCKS // self.beats))  # number of the word in its tile
        with m.If(self.i.valid & advance):
            m.d.sync += entering.eq(Mux(self.i.payload.ends, 0, entering + 1))
        number_before = registered(m, advance, entering, "number1")
        number = registered(m, advance, number_before, "number2")
        shares, touched = self._shares(m, advance, before, number_before, beats)

        known: Any = Signal(data.ArrayLayout(Statistics(self.config), TILE_BLOCKS), reset_less=True)
        m.submodules.tiles = tiles = StreamFifo(_TileStatistics(self.config), _TILES_WAITING)
        finished: Any = tiles.i.payload
        grouped = self._grouped(word.tag.mode)
        for block in range(TILE_BLOCKS):
            # The first beat of a block is in the first row of its tile; that of a group is the very first beat.
            fresh = number == block // self.beats
            both = self._both(m, known[block], shares[block], f"both{block}")
            m.d.comb += finished["values"][block].eq(Mux(touched[block], Mux(fresh, shares[block], both), known[block]))
        with m.If(words.valid & words.ready):
            m.d.sync += known.eq(finished["values"])
        m.d.comb += [
            completes.eq(self._ranged(word.tag.mode) & word.ends),
            room.eq(tiles.i.ready),
            tiles.i.valid.eq(words.valid & completes & self.o.ready),
            finished.blocks.eq(word.blocks),
            finished.mode.eq(word.tag.mode),
            finished.quantizer.eq(word.tag.how.affine),
        ]

        # Block by block
        tile = tiles.o.payload
        block_number = Signal(range(TILE_BLOCKS))
        grouped = self._grouped(tile.mode)
        final = grouped | (block_number == tile.blocks - 1)
        m.d.comb += [
            self.found.valid.eq(tiles.o.valid),
            tiles.o.ready.eq(self.found.ready & final),
            self.found.payload["values"].eq(tile["values"][block_number]),
            self.found.payload.blocks.eq(Mux(grouped, tile.blocks, 1)),
            self.found.payload.mode.eq(tile.mode),
            self.found.payload.quantizer.eq(tile.quantizer),
        ]
        with m.If(self.found.valid & self.found.ready):
            m.d.sync += block_number.eq(Mux(final, 0, block_number + 1))

    def _shares(
        self, m: Module, advance: Value, word: Any, number: Value, beats: Sequence[Any]
    ) -> tuple[list[Any], list[Value]]:
        """Return the statistics that word ``number`` of a tile adds to each block, and whether it adds any, in registers."""

        @cache
        def together(lane: int, step: int) -> Any:
            """Return the statistics of every ``step``-th beat from ``lane`` on."""
            if lane + step >= self.beats:
                return beats[lane]
            one, other = together(lane, 2 * step), together(lane + step, 2 * step)
            return self._both(m, one, other, f"lanes{lane}_{step}")

        # Computed outside of any condition
        of_width = {
            blocks: [together(lane, blocks) for lane in range(min(blocks, self.beats))] for blocks in range(1, TILE_BLOCKS + 1)
        }
        width = Mux(self._grouped(word.tag.mode), 1, word.blocks)
        shares: list[Any] = [Signal(Statistics(self.config), name=f"share{block}") for block in range(TILE_BLOCKS)]
        touched = [Signal(name=f"touched{block}") for block in range(TILE_BLOCKS)]
        for block, (share, touches) in enumerate(zip(shares, touched, strict=True)):
            with m.Switch(width):
                if block == 0:
                    with m.Case(1):
                        m.d.comb += [*_taken_over(share, of_width[1][0]), touches.eq(1)]
                for blocks in range(max(block + 1, 2), TILE_BLOCKS + 1):
                    with m.Case(blocks), m.Switch(number):
                        for place in range(BLOCK_SIDE * blocks // self.beats):
                            lane = (block - place * self.beats) % blocks
                            if lane < self.beats:
                                with m.Case(place):
                                    m.d.comb += [*_taken_over(share, of_width[blocks][lane]), touches.eq(1)]
        return (
            [
                data.View(Statistics(self.config), registered(m, advance, Value.cast(share), f"share{block}_register"))
                for block, share in enumerate(shares)
            ],
            [registered(m, advance, touches, f"touched{block}_register") for block, touches in enumerate(touched)],
        )


def _taken_over(statistics: Any, narrower: Any) -> list[Any]:
    """Return statements that set statistics to narrower ones, whose total has fewer bits."""
    return [statistics[name].eq(narrower[name]) for name, _ in statistics.shape()]


def _tree(values: Sequence[Value], both: Callable[[Value, Value], Value]) -> Value:
    """Reduce a power of two of values as a tree: pairs of values, then pairs of the results, and so on."""
    while len(values) > 1:
        values = [both(one, other) for one, other in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def _smaller(one: Value, other: Value) -> Value:
    return Mux(one < other, one, other).as_signed()


def _greater(one: Value, other: Value) -> Value:
    return Mux(one > other, one, other).as_signed()
