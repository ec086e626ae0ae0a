"""Decoder of entropy-coded bytes to coefficients and their places (ITU-T T.81, F.2.2)."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.huffman import MAX_CODE_BITS, STANDARD, HuffmanTable, HuffmanTables
from cdu_spec.jpeg import DC_MAX, DC_MIN, EOB, MAX_DC_SIZE, ZRL, ZRL_RUN

from cdu.coding.byte_unstuffer import CodedBytes
from cdu.coding.huffman_encoder import longest_bits
from cdu.coding.jpeg_words import COEFFICIENT, PIECE_BYTES, PlacedCoefficient
from cdu.parts.bit_shift import dropped, raised
from cdu.parts.streams import registered

_PIECE_BITS = 8 * PIECE_BYTES
#: Greatest number of bits that pad the last byte.
_FILLING = 7


class _Code(data.StructLayout):
    """A symbol: its code's ``length``, and ``bits`` with the extra ones, 0 where there is no code."""

    def __init__(self, most: int) -> None:
        super().__init__(
            {
                "run": range(ZRL_RUN),
                "size": range(MAX_DC_SIZE + 1),
                "length": range(MAX_CODE_BITS + 1),
                "bits": range(most + 1),
                "eob": 1,
                "zrl": 1,
            }
        )


class HuffmanDecoder(wiring.Component):
    """Decode a symbol per cycle, from a window that holds the next bits.

    The window is compared with all codes of the table that is due at once, so that code, size and number of bits are known in
    one step. The rest of a segment behind a whole block ends the segment if it is less than a byte of ones; any other rest
    begins a block. After an error the rest of the segment is dropped.

    Parameters
    ----------
    tables
        The Huffman tables, wired in.

    Ports
    -----
    i
        Stream of :class:`~cdu.coding.byte_unstuffer.CodedBytes`.
    o
        Stream of :class:`~cdu.coding.jpeg_words.PlacedCoefficient`.

    Latency: 4 cycles. One symbol per cycle as long as words have its bits.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, tables: HuffmanTables = STANDARD) -> None:
        self.tables = tables
        self.most = longest_bits(tables)
        super().__init__({"i": In(stream.Signature(CodedBytes(PIECE_BYTES))), "o": Out(stream.Signature(PlacedCoefficient()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        most = self.most
        advance = Signal()
        go = Signal()
        m.d.comb += advance.eq(~self.o.valid | self.o.ready)

        # 1: the window. With two symbols in it the next one does not wait for a word.
        size = 2 * most - 1 + _PIECE_BITS
        window = Signal(size)
        level = Signal(range(size + 1))
        closed = Signal()  # all bytes have come
        marked = Signal()  # a marker is behind them
        failed = Signal()  # there was an error
        place = Signal(range(BLOCK_VALUES))
        some = Signal()  # blocks have begun
        after_zrl = Signal()
        is_dc = place == 0
        code = self._code(m, window[:MAX_CODE_BITS], is_dc)
        ones = Cat(*(level > bit for bit in range(_FILLING)))
        filling = Signal()
        ends = Signal()
        lacks = Signal()
        m.d.comb += [
            filling.eq((level <= _FILLING) & (window[:_FILLING] == ones)),
            ends.eq(closed & (failed | (is_dc & some & filling & ~marked))),
            lacks.eq((level < most) & ~closed),
            go.eq(advance & (ends | ~(lacks | failed))),
        ]
        target = Signal(range(2 * BLOCK_VALUES))
        wrong = Signal()
        leaves = (target >= BLOCK_VALUES) | (code["zrl"] & (target == BLOCK_VALUES - 1))
        m.d.comb += [
            target.eq(place + code["run"]),
            wrong.eq(~ends & ((code["bits"] == 0) | (code["bits"] > level) | leaves | (code["eob"] & after_zrl))),
        ]
        self._window(m, window, level, closed, marked, failed, Mux(go, code["bits"], 0))
        with m.If(go):
            m.d.sync += [
                place.eq(Mux(code["eob"], 0, target + 1)),
                some.eq(1),
                after_zrl.eq(code["zrl"]),
                failed.eq(wrong),
            ]
            with m.If(ends):
                m.d.sync += [signal.eq(0) for signal in (window, level, closed, marked, failed, place, some, after_zrl)]
        valid = Signal(2)
        with m.If(advance):
            m.d.sync += valid.eq(Cat(go, valid)[: len(valid)])
        notes: Any = Signal(data.StructLayout({"place": range(BLOCK_VALUES), "dc": 1, "stores": 1, "wrong": 1, "ends": 1}))
        m.d.comb += [
            notes["place"].eq(target),
            notes["dc"].eq(is_dc),
            notes["stores"].eq(code["size"].any()),
            notes["wrong"].eq(wrong),
            notes["ends"].eq(ends),
        ]

        self._values(m, advance, valid, window[:most], code, notes)
        return m

    def _values(self, m: Module, advance: Value, valid: Value, window: Value, code: Any, notes: Any) -> None:
        """Give the coefficient of a code and of the extra bits behind it in ``window``, two stages after its ``notes``."""
        # 2: the extra bits; those of a negative value are the complement of its magnitude
        bits = registered(m, advance, window, "bits2")
        length, value_size = (registered(m, advance, code[name], f"{name}2") for name in ("length", "size"))
        notes2 = registered(m, advance, notes, "notes2")
        extra = Signal(MAX_DC_SIZE)
        m.d.comb += extra.eq(dropped(m, bits, length, MAX_DC_SIZE, "extra_at"))
        negative = ~extra[0]
        upright = Cat(*(extra ^ negative.replicate(MAX_DC_SIZE))[::-1])
        magnitude = dropped(m, upright, (MAX_DC_SIZE - value_size)[: len(value_size)], MAX_DC_SIZE, "magnitude_at")

        # 3: the value, of DC the sum of all differences
        magnitude, negative = registered(m, advance, magnitude, "magnitude3"), registered(m, advance, negative, "negative3")
        notes3: Any = registered(m, advance, notes2, "notes3")
        previous_dc = Signal(COEFFICIENT)
        value = Mux(negative, -magnitude, magnitude) + Mux(notes3["dc"], previous_dc, 0)
        in_range = (value >= DC_MIN) & (value <= DC_MAX)
        out: Any = self.o.payload
        with m.If(advance):
            m.d.sync += [
                self.o.valid.eq(valid[1]),
                out["place"].eq(notes3["place"]),
                out["value"].eq(value),
                out["stores"].eq(notes3["stores"] | notes3["dc"]),
                out["begins"].eq(notes3["dc"] & ~notes3["ends"]),
                out["error"].eq(notes3["wrong"] | (notes3["dc"] & ~in_range & ~notes3["ends"])),
                out["ends"].eq(notes3["ends"]),
            ]
            with m.If(valid[1]):
                with m.If(notes3["ends"]):
                    m.d.sync += previous_dc.eq(0)
                with m.Elif(notes3["dc"]):
                    m.d.sync += previous_dc.eq(value)

    def _window(
        self, m: Module, window: Signal, level: Signal, closed: Signal, marked: Signal, failed: Signal, bits: Value
    ) -> None:
        """Remove the first ``bits`` bits from the window and append words behind the rest."""
        word: Any = self.i.payload
        takes = self.i.valid & self.i.ready
        first_lowest = Cat(*(word["data"].word_select(place, 8)[::-1] for place in range(PIECE_BYTES)))
        filled = Signal.like(window)
        joined = raised(m, first_lowest & takes.replicate(_PIECE_BITS), level, len(window), "joined")
        m.d.comb += [self.i.ready.eq(~closed & (failed | (level < 2 * self.most))), filled.eq(window | joined)]
        m.d.sync += [
            window.eq(dropped(m, filled, bits, len(window), "dropped")),
            level.eq(level + Mux(takes, word["count"] << 3, 0) - bits),
        ]
        with m.If(takes):
            m.d.sync += [closed.eq(word["last"]), marked.eq(word["marked"])]

    def _code(self, m: Module, bits: Value, is_dc: Value) -> Any:
        """Return the symbol with whose code the bits begin."""
        code: Any = Signal(_Code(self.most), name="code")
        dc, ac = self._of_table(m, bits, self.tables.dc, "dc"), self._of_table(m, bits, self.tables.ac, "ac")
        m.d.comb += code.eq(Mux(is_dc, dc, ac))
        return code

    def _of_table(self, m: Module, bits: Value, table: HuffmanTable, name: str) -> Any:
        code: Any = Signal(_Code(self.most), name=f"{name}_code")
        with m.Switch(bits):
            for symbol, (number, length) in table.codes.items():
                run, size = divmod(symbol, ZRL_RUN)
                with m.Case(f"{number:0{length}b}"[::-1].rjust(MAX_CODE_BITS, "-")):
                    m.d.comb += [
                        code["run"].eq(run),
                        code["size"].eq(size),
                        code["length"].eq(length),
                        code["bits"].eq(length + size),
                    ]
                    if table is self.tables.ac:
                        m.d.comb += [code["eob"].eq(symbol == EOB), code["zrl"].eq(symbol == ZRL)]
        return code
