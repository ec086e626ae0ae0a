"""Encoder of columns of quantised coefficients to run-length symbols (ITU-T T.81, F.1.2)."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.jpeg import ZIGZAG, ZRL_RUN

from cdu.coding.jpeg_words import COEFFICIENT, CoefficientColumn, RunLengthSymbol


class _Phase(enum.Enum, shape=2):
    """Kind of the next symbol: a coefficient, the end of a block, or the end of the scan."""

    COEFFICIENT = 0
    EOB = 1
    END = 2


class RunLengthEncoder(wiring.Component):
    """Encode blocks one after the other to run-length symbols, one symbol per cycle.

    Two stores of 64 coefficients: columns fill one while the other is coded. A mask of the nonzero coefficients in zig-zag
    order gives the next coefficient in one cycle, however many zeros precede it.

    Ports
    -----
    i
        Stream of :class:`~cdu.coding.jpeg_words.CoefficientColumn`, counted from reset: 8 are a block.
    o
        Stream of :class:`~cdu.coding.jpeg_words.RunLengthSymbol`; ``ends`` follows the last block of a scan.

    Latency: 3 cycles from the last column of a block to its first symbol. One column per cycle as long as blocks have up to 8
    symbols; a longer block takes as many cycles as it has symbols.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(CoefficientColumn())), "o": Out(stream.Signature(RunLengthSymbol()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        turn = Signal()
        store, mask, last, full = self._incoming(m, turn)

        # Remaining mask of the block that is coded; the bit of DC is always set.
        busy = Signal()
        moves = Signal()
        left = Signal(BLOCK_VALUES)
        scan_ends = Signal(reset_less=True)
        block = [Signal(COEFFICIENT, name=f"coded{place}", reset_less=True) for place in range(BLOCK_VALUES)]
        rest = Signal(BLOCK_VALUES)
        final = rest == 0
        m.d.comb += [rest.eq(left & (left - 1)), turn.eq(~busy | (moves & final))]
        with m.If(busy & moves):
            m.d.sync += left.eq(rest)
        with m.If(turn):
            m.d.sync += [busy.eq(full), left.eq(mask | 1), scan_ends.eq(last)]
            m.d.sync += [coded.eq(coming) for coded, coming in zip(block, store, strict=True)]

        # 1: first coefficient of the remaining mask
        place = Signal(range(BLOCK_VALUES))
        m.d.comb += place.eq(_first(m, left))
        valid = Signal()
        found = Signal.like(place, reset_less=True)
        value = Signal(COEFFICIENT, reset_less=True)
        is_final = Signal(reset_less=True)
        is_last = Signal(reset_less=True)
        with m.If(moves):
            m.d.sync += [
                valid.eq(busy),
                found.eq(place),
                value.eq(Array(block)[place]),
                is_final.eq(final),
                is_last.eq(scan_ends),
            ]

        self._symbols(m, valid, found, value, is_final, is_last, moves)
        return m

    def _symbols(
        self, m: Module, valid: Value, found: Value, value: Value, is_final: Value, is_last: Value, moves: Signal
    ) -> None:
        """Give the symbols of a coefficient and the run before it, then those of the ends; ``moves`` asks for the next one.

        The coefficient has its place ``found`` and its ``value``; ``is_final`` and ``is_last`` say that it ends its block, and
        that its block ends a scan.
        """
        symbol: Any = self.o.payload
        phase = Signal(_Phase)
        at = Signal(range(BLOCK_VALUES))  # the place behind the coefficient before
        run = Signal.like(at)  # zeros since then
        previous_dc = Signal(COEFFICIENT)
        last_block = Signal(reset_less=True)
        long = Signal()
        sends = Signal()
        m.d.comb += [
            run.eq(found - at),
            long.eq(run >= ZRL_RUN),
            sends.eq(self.o.valid & self.o.ready),
            self.o.valid.eq(valid | (phase != _Phase.COEFFICIENT)),
            moves.eq(~valid | (sends & (phase == _Phase.COEFFICIENT) & ~long)),
        ]
        with m.Switch(phase):
            with m.Case(_Phase.COEFFICIENT):
                with m.If(long):
                    m.d.comb += symbol["run"].eq(ZRL_RUN - 1)
                    with m.If(sends):
                        m.d.sync += at.eq(at + ZRL_RUN)
                with m.Else():
                    is_dc = found == 0
                    m.d.comb += [
                        symbol["dc"].eq(is_dc),
                        symbol["run"].eq(run),
                        symbol["value"].eq(value - Mux(is_dc, previous_dc, 0)),
                    ]
                    with m.If(sends):
                        m.d.sync += [at.eq(Mux(is_final, 0, found + 1)), last_block.eq(is_last)]
                        with m.If(is_dc):
                            m.d.sync += previous_dc.eq(value)
                        with m.If(is_final):
                            ended = found == BLOCK_VALUES - 1
                            following = Mux(is_last, _Phase.END, _Phase.COEFFICIENT)
                            m.d.sync += phase.eq(Mux(ended, following, _Phase.EOB))
            with m.Case(_Phase.EOB), m.If(sends):
                m.d.sync += phase.eq(Mux(last_block, _Phase.END, _Phase.COEFFICIENT))
            with m.Case(_Phase.END):
                m.d.comb += symbol["ends"].eq(1)
                with m.If(sends):
                    m.d.sync += [phase.eq(_Phase.COEFFICIENT), previous_dc.eq(0)]

    def _incoming(self, m: Module, taken: Value) -> tuple[list[Signal], Value, Value, Value]:
        """Return the incoming block in zig-zag order: coefficients, nonzero mask, whether it is the last, and complete."""
        column: Any = self.i.payload
        number = Signal(range(BLOCK_SIDE))
        full = Signal()
        last = Signal(reset_less=True)
        mask = Signal(BLOCK_VALUES, reset_less=True)
        store = [Signal(COEFFICIENT, name=f"coming{place}", reset_less=True) for place in range(BLOCK_VALUES)]
        m.d.comb += self.i.ready.eq(~full | taken)
        with m.If(taken):
            m.d.sync += full.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [number.eq(number + 1), full.eq(number == BLOCK_SIDE - 1), last.eq(column["last"])]
            for place, index in enumerate(ZIGZAG):
                vertical, horizontal = divmod(index, BLOCK_SIDE)
                coefficient = column["values"][vertical]
                with m.If(number == horizontal):
                    m.d.sync += [store[place].eq(coefficient), mask[place].eq(coefficient != 0)]
        return store, mask, last, full


def _first(m: Module, mask: Value) -> Value:
    """Return the position of the lowest set bit of a mask whose length is a power of two; undefined for a mask of zeros."""
    groups: list[tuple[Value, Value]] = [(bit, Cat()) for bit in mask]
    while len(groups) > 1:
        groups = [
            (low | high, Cat(Mux(low, low_place, high_place), ~low))
            for (low, low_place), (high, high_place) in zip(groups[::2], groups[1::2], strict=True)
        ]
    return groups[0][1]
