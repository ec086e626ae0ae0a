"""Quantiser with divisors (JPEG-BASE, "DIV"), every coefficient divided by its own table entry, and its inverse."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES
from cdu_spec.rounding import Rounding

from cdu.parts.streams import lanes, pipeline, registered
from cdu.parts.widths import Ranged

DIVISOR_BITS = 8
#: The 64 divisors, 1 to 255, in the order in which the coefficients come: entry ``8 * column + row``.
DivisorTable = data.ArrayLayout(DIVISOR_BITS, BLOCK_VALUES)
#: A reciprocal of a divisor has as many fraction bits, the fewest with which all quotients are exact; see :func:`quotient`.
RECIPROCAL_SHIFT = 19


def reciprocal(divisor: int) -> int:
    """The reciprocal of a divisor 128 to 255, rounded up, 12 bits and one more for 128."""
    return -(-(1 << RECIPROCAL_SHIFT) // divisor)


def quotient(dividend: int, divisor: int) -> int:
    """``dividend // divisor`` as the hardware finds it, for a divisor 1 to 255 and a dividend 0 to ``2048 + divisor // 2``."""
    places = DIVISOR_BITS - divisor.bit_length()
    return dividend * reciprocal(divisor << places) >> (RECIPROCAL_SHIFT - places)


def _divisors_of_column(m: Module, divisors: Any, moved: Value) -> list[Signal]:
    """The divisors of the column that comes; ``moved`` goes on to the next one. Columns are counted from reset."""
    column = Signal(range(BLOCK_SIDE), name="column")
    with m.If(moved):
        m.d.sync += column.eq(column + 1)
    found = [Signal(DIVISOR_BITS, name=f"divisor{lane}") for lane in range(LANES)]
    for lane, divisor in enumerate(found):
        m.d.comb += divisor.eq(Array(divisors[BLOCK_SIDE * number + lane] for number in range(BLOCK_SIDE))[column])
    return found


class DivQuantizer(wiring.Component):
    """``q = round(c / d)`` on a column of 8 coefficients per cycle, exactly, by multiplication with reciprocals.

    Parameters
    ----------
    config
        ``rounding`` is used: ``half_away`` (to nearest, ties away from zero) or ``trunc`` (toward zero).

    Ports
    -----
    i
        Stream of columns of 8 coefficients, ``signed(12)``.
    o
        Stream of columns of 8 quantised coefficients, ``signed(12)``: no larger than those that came.
    divisors
        The table, constant while blocks pass.

    Latency 3 cycles, one transfer per cycle. Columns are counted from reset; a job is a whole number of blocks.
    """

    i: stream.Interface
    o: stream.Interface
    divisors: Any

    latency = 3

    def __init__(self, config: CduConfig) -> None:
        self.rounding = config.rounding_mode
        columns = stream.Signature(lanes(config.coefficient_bits))
        super().__init__({"i": In(columns), "o": Out(columns), "divisors": In(DivisorTable)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        divisors = _divisors_of_column(m, self.divisors, self.i.valid & self.i.ready)
        for lane, divisor in enumerate(divisors):
            m.d.comb += self.o.payload[lane].eq(self._quantized(m, advance, self.i.payload[lane], divisor, str(lane)))
        return m

    def _quantized(self, m: Module, advance: Value, coefficient: Value, divisor: Value, lane: str) -> Value:
        """One lane."""
        # 1: magnitude and half a divisor; the reciprocal of the divisor, moved until its highest bit is set
        size = len(coefficient)
        negative = registered(m, advance, coefficient[-1], f"negative1_{lane}")
        magnitude = Mux(coefficient[-1], -coefficient, coefficient)[:size]
        half = divisor >> 1 if self.rounding is Rounding.HALF_AWAY else Const(0)
        dividend = registered(m, advance, (magnitude + half)[:size], f"dividend{lane}")
        normal, places = Signal(DIVISOR_BITS, name=f"normal{lane}"), Signal(range(DIVISOR_BITS), name=f"places{lane}")
        for place in range(DIVISOR_BITS):  # the highest set bit wins
            with m.If(divisor[place]):
                moved = DIVISOR_BITS - 1 - place
                m.d.comb += [normal.eq(divisor << moved), places.eq(moved)]
        table = Array(Const(reciprocal(value)) for value in range(1 << (DIVISOR_BITS - 1), 1 << DIVISOR_BITS))
        inverse = registered(m, advance, table[normal[:-1]], f"reciprocal{lane}")
        places1 = registered(m, advance, places, f"places1_{lane}")

        # 2: product
        product = registered(m, advance, dividend * inverse, f"product{lane}")
        negative = registered(m, advance, negative, f"negative2_{lane}")
        places2 = registered(m, advance, places1, f"places2_{lane}")

        # 3: its whole part, with the sign; it has one bit less than the coefficient, but for -2048
        least = RECIPROCAL_SHIFT - (DIVISOR_BITS - 1)
        whole = (product[least:] >> (DIVISOR_BITS - 1 - places2)[: len(places)])[:size]
        return registered(m, advance, Mux(negative, -whole, whole)[:size], f"q{lane}").as_signed()


class InverseDivQuantizer(wiring.Component):
    """``c = sat12(q * d)`` on a column of 8 quantised coefficients per cycle.

    What a quantiser wrote never saturates by more than half a divisor; a corrupted scan gives coefficients that the inverse DCT
    accepts.

    Ports
    -----
    i
        Stream of columns of 8 quantised coefficients, ``signed(12)``.
    o
        Stream of columns of 8 coefficients, ``signed(12)``.
    divisors
        The table, constant while blocks pass.

    Latency 2 cycles, one transfer per cycle. Columns are counted from reset; a job is a whole number of blocks.
    """

    i: stream.Interface
    o: stream.Interface
    divisors: Any

    latency = 2

    def __init__(self, config: CduConfig) -> None:
        self.coefficient_bits = config.coefficient_bits
        columns = stream.Signature(lanes(self.coefficient_bits))
        super().__init__({"i": In(columns), "o": Out(columns), "divisors": In(DivisorTable)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        for lane, divisor in enumerate(_divisors_of_column(m, self.divisors, self.i.valid & self.i.ready)):
            product = registered(m, advance, self.i.payload[lane] * divisor, f"product{lane}")
            limited = Ranged.of(product).saturated(self.coefficient_bits)
            m.d.comb += self.o.payload[lane].eq(registered(m, advance, limited, f"c{lane}"))
        return m
