"""Encoder of run-length symbols to the bytes of Huffman codes and extra bits (ITU-T T.81, F.1.2)."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.huffman import MAX_CODE_BITS, STANDARD, HuffmanTables
from cdu_spec.jpeg import MAX_DC_SIZE

from cdu.coding.jpeg_words import PIECE_BYTES, RunLengthSymbol
from cdu.parts.bit_shift import raised
from cdu.parts.streams import registered
from cdu.parts.width_converter import Bytes, expand, ones

_PIECE_BITS = 8 * PIECE_BYTES
#: Number of ones that pad the last byte; surplus ones are cut off.
_FILLING = 7


def longest_bits(tables: HuffmanTables) -> int:
    """Return the bits of the longest code with its extra bits."""
    ac = max(length + (symbol & 15) for symbol, (_, length) in tables.ac.codes.items())
    return max(ac, *(length + size for size, (_, length) in tables.dc.codes.items()))


class HuffmanEncoder(wiring.Component):
    """Concatenate codes and extra bits, a symbol per cycle.

    Inside, the first bit is the lowest one; a byte of a segment has it at the top.

    Parameters
    ----------
    tables
        The Huffman tables, wired in.

    Ports
    -----
    i
        Stream of :class:`~cdu.coding.jpeg_words.RunLengthSymbol`.
    o
        Stream of :class:`~cdu.parts.width_converter.Bytes`, not stuffed yet: full words except for the last one of a scan,
        whose last byte is padded with ones.

    Latency: 4 cycles from the symbol that fills a word, and one more bit.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, tables: HuffmanTables = STANDARD) -> None:
        self.tables = tables
        super().__init__({"i": In(stream.Signature(RunLengthSymbol())), "o": Out(stream.Signature(Bytes(PIECE_BYTES)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = Signal()
        valid = Signal(3)
        m.d.comb += [advance.eq(~self.o.valid | self.o.ready), self.i.ready.eq(advance)]
        with m.If(advance):
            m.d.sync += valid.eq(Cat(self.i.valid, valid)[: len(valid)])

        # 1: magnitude
        symbol: Any = self.i.payload
        value = symbol["value"]
        negative = registered(m, advance, value[-1], "negative")
        magnitude = registered(m, advance, Mux(value[-1], -value, value)[:MAX_DC_SIZE], "magnitude")
        beside = [registered(m, advance, symbol[name], f"{name}1") for name in ("dc", "run", "ends")]

        # 2: size, and that many extra bits; those of a negative value are the bits of the value less one
        size = Signal(range(MAX_DC_SIZE + 1))
        for place in range(MAX_DC_SIZE):
            with m.If(magnitude[place]):
                m.d.comb += size.eq(place + 1)
        one_less = magnitude ^ negative.replicate(MAX_DC_SIZE)
        at_the_top = raised(m, one_less, (MAX_DC_SIZE - size)[: len(size)], MAX_DC_SIZE, "at_the_top")
        extra = registered(m, advance, at_the_top[::-1], "extra")
        size2 = registered(m, advance, size, "size2")
        dc, run, ends = (registered(m, advance, part, f"beside2_{index}") for index, part in enumerate(beside))

        # 3: the code before them
        code, length = self._code(m, dc, run, size2)
        most = longest_bits(self.tables)
        coded = Signal(most)
        bits = Signal(range(most + 1))
        behind_code = raised(m, extra, length, most, "behind_code")
        with m.If(ends):
            m.d.comb += [coded.eq(Const(-1, _FILLING)), bits.eq(_FILLING)]
        with m.Else():
            m.d.comb += [coded.eq(code | behind_code), bits.eq(length + size2)]
        coded3, bits3 = registered(m, advance, coded, "coded3"), registered(m, advance, bits, "bits3")
        ends = registered(m, advance, ends, "ends3")

        # 4: into words; a word stays until a bit follows it, so that the last one is never empty
        kept = Signal(_PIECE_BITS)
        level = Signal(range(_PIECE_BITS + 1))
        both = Signal(_PIECE_BITS + most)
        total = Signal(range(_PIECE_BITS + most + 1))
        over = Signal()
        m.d.comb += [
            both.eq(kept | raised(m, coded3, level, len(both), "behind_kept")),
            total.eq(level + bits3),
            over.eq(total > _PIECE_BITS),
        ]
        word: Any = self.o.payload
        with m.If(advance):
            m.d.sync += self.o.valid.eq(valid[-1] & (over | ends))
            with m.If(valid[-1]):
                count = Mux(ends, total[3:], PIECE_BYTES)
                in_order = Cat(*(both.word_select(place, 8)[::-1] for place in range(PIECE_BYTES)))
                m.d.sync += [
                    word["data"].eq(in_order & expand(ones(count, PIECE_BYTES))),
                    word["count"].eq(count),
                    word["last"].eq(ends),
                ]
                with m.If(ends):
                    m.d.sync += [kept.eq(0), level.eq(0)]
                with m.Else():
                    m.d.sync += [kept.eq(Mux(over, both[_PIECE_BITS:], both)), level.eq(Mux(over, total - _PIECE_BITS, total))]
        return m

    def _code(self, m: Module, dc: Value, run: Value, size: Value) -> tuple[Value, Value]:
        """Return the code of a symbol and its length; length 0 for an invalid symbol."""
        code = Signal(MAX_CODE_BITS)
        length = Signal(range(MAX_CODE_BITS + 1))
        for of_dc, table in ((1, self.tables.dc), (0, self.tables.ac)):
            with m.If(dc == of_dc), m.Switch(Cat(size, run)):
                for symbol, (number, bits) in table.codes.items():
                    # The run of a DC symbol is 0.
                    with m.Case((symbol & 15) | symbol >> 4 << len(size)):
                        m.d.comb += [code.eq(int(f"{number:0{bits}b}"[::-1], 2)), length.eq(bits)]
        return code, length
