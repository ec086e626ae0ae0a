"""Floating point to MX: blocks of 32 values with a power of two as their scale (OCP Microscaling Formats v1.0)."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.geometry import LANES
from cdu_spec.modes import Dtype
from cdu_spec.mx import MX_FORMATS

from cdu.parts.mx_words import BLOCK_ROWS, FORMAT_BITS, SCALE_BITS, CodedRow
from cdu.parts.streams import registered
from cdu.values.mx_element import BlockTerms, ShiftedValue, WaitingValue, code_of, kept_bits, magnitude_key, shifted_value


class MxEncoder(wiring.Component):
    """Blocks of MX from 8 float32 values per cycle; the bytes are those of :func:`actcodec.golden.mx.encode`.

    Values wait in a line of four rows until the greatest of their block is known. There is no multiplier: an element is a
    shifted significand, rounded.

    Parameters
    ----------
    rows
        1, 2 or 4: rows that come as one, in each cycle. The line has four rows for any number.
    beside
        Bits that pass beside them.

    Ports
    -----
    i
        Stream of rows of 8 ``values`` as bit patterns, 4 a block; ``format``, a number of :data:`~cdu_spec.mx.MX_FORMATS`, and
        ``rceil``, the rule of the scale, are the same in all rows of a block. ``beside``, if there are such bits.
    o
        Stream of :class:`~cdu.parts.mx_words.CodedRow`.

    Latency 2 cycles from the last row of a block to its first one at ``o``; one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, rows: int = 1, beside: int = 0) -> None:
        self.rows, self.beside = rows, beside
        values = data.ArrayLayout(Shape(Dtype.FP32.bits), rows * LANES)
        fields = {"values": values, "format": FORMAT_BITS, "rceil": 1} | ({"beside": beside} if beside else {})
        coded = CodedRow(rows, beside)
        super().__init__({"i": In(stream.Signature(data.StructLayout(fields))), "o": Out(stream.Signature(coded))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        row = self.i.payload
        lanes, length = range(self.rows * LANES), BLOCK_ROWS // self.rows

        # 1: a line in which rows go on as far as there is room
        waiting = Signal(length)  # whether there is a row in each place, the last one at the highest bit
        leaves = Signal()
        takes = Signal()
        free = Signal(length)
        for place in range(length):
            m.d.comb += free[place].eq(~waiting[place] | (leaves if place == length - 1 else free[place + 1]))
            with m.If(free[place]):
                m.d.sync += waiting[place].eq(waiting[place - 1] if place else self.i.valid)
        m.d.comb += [self.i.ready.eq(free[0]), takes.eq(self.i.valid & free[0])]
        line: Value = Cat(*(kept_bits(row["values"][lane]) for lane in lanes), *([row["beside"]] if self.beside else []))
        for place in range(length):
            line = registered(m, free[place], line, f"row{place + 1}")

        # The block's greatest magnitude, from which the scale follows, with its last row
        number = Signal(range(length))  # of rows that are there
        left = Signal(range(length + 1))  # rows of the block before, which may leave
        whole = takes & (number == length - 1)
        with m.If(takes):
            m.d.sync += number.eq(number + 1)
        with m.If(whole):
            m.d.sync += left.eq(length)
        with m.Elif(leaves):
            m.d.sync += left.eq(left - 1)
        of_row = _largest(m, [magnitude_key(m, row["values"][lane], row["format"], lane) for lane in lanes], "of_row")
        greatest = Signal.like(of_row, name="greatest")
        largest = Mux((number == 0) | (of_row > greatest), of_row, greatest)
        with m.If(takes):
            m.d.sync += greatest.eq(largest)
        number1, rceil1 = registered(m, whole, row["format"], "format1"), registered(m, whole, row["rceil"], "rceil1")
        block = BlockTerms.of(m, number1, rceil1, registered(m, whole, largest, "largest"))

        # 2: shifted significands
        valid = Signal()
        moves = Signal()
        m.d.comb += [moves.eq(~valid | self.o.ready), leaves.eq(waiting[-1] & (left != 0) & moves)]
        with m.If(moves):
            m.d.sync += valid.eq(waiting[-1] & (left != 0))
        waiting_bits = WaitingValue().size
        values = [line[lane * waiting_bits : (lane + 1) * waiting_bits] for lane in lanes]
        shifted = [shifted_value(m, data.View(WaitingValue(), value), block, lane) for lane, value in enumerate(values)]
        columns = [
            ShiftedValue(*(registered(m, moves, part, f"lane{lane}_{name}") for name, part in vars(one).items()))
            for lane, one in enumerate(shifted)
        ]
        heads = registered(m, moves, left == length, "heads")
        # It stays until all rows have left the line, and a block that is one row leaves it before it leaves the encoder.
        scale = block.scale if length > 1 else registered(m, moves, block.scale, "scale2")
        m.d.comb += [
            self.o.valid.eq(valid),
            self.o.payload["heads"].eq(heads),
            self.o.payload["format"].eq(registered(m, moves, number1, "format2")),
            self.o.payload["scale"].eq(scale & heads.replicate(SCALE_BITS)),
        ]
        if self.beside:
            m.d.comb += self.o.payload["beside"].eq(registered(m, moves, line[-self.beside :], "beside2"))

        # 3: rounded, limited, side by side
        number2 = self.o.payload["format"]
        codes = [code_of(m, column, number2, lane) for lane, column in enumerate(columns)]
        with m.Switch(number2):
            for kind in MX_FORMATS.values():
                with m.Case(kind.number):
                    m.d.comb += self.o.payload["codes"].eq(Cat(*(code[: kind.bits] for code in codes)))
        return m


def _largest(m: Module, values: list[Value], name: str = "largest") -> Value:
    """The greatest of several: among the values of a row each is compared with all others at once."""
    if len(values) > LANES:
        rows = [values[first : first + LANES] for first in range(0, len(values), LANES)]
        return _largest(m, [_largest(m, row, f"{name}{number}") for number, row in enumerate(rows)], name)
    places = range(len(values))
    found, wins = Signal.like(values[0], name=name), Signal(len(values), name=f"{name}_at")
    no_less = {(one, other): values[one] >= values[other] for one in places for other in places if one < other}
    for one in places:
        others = (no_less[one, other] if one < other else ~no_less[other, one] for other in places if other != one)
        m.d.comb += wins[one].eq(Cat(*others).all())
    m.d.comb += found.eq(reduce(or_, (value & won.replicate(len(value)) for value, won in zip(values, wins, strict=True))))
    return found
