"""Shift quantiser (SH) and its inverse: every coefficient has its own power-of-two step (JPEG-ACT, "SH")."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import latencies
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, SHIFT_BITS, VALUE_BITS
from cdu_spec.reconstruction import MAX_POINT, POINT_BITS
from cdu_spec.register_types import BANKS
from cdu_spec.rounding import Rounding
from cdu_spec.sfpr import VALUE_MAX, VALUE_MIN

from cdu.parts.streams import Beat, lanes, pipeline, registered
from cdu.parts.widths import Ranged
from cdu.words import ShiftBanks


def _shifts_of_column(m: Module, banks: data.View[data.ArrayLayout], bank: Value, step: Value) -> list[Value]:
    """The 8 shifts of the column that passes now; ``step`` is high when it passes."""
    column = Signal(range(BLOCK_SIDE))
    with m.If(step):
        m.d.sync += column.eq(column + 1)
    layout = data.ArrayLayout(SHIFT_BITS, BANKS * BLOCK_SIDE)
    return [data.View(layout, _entries(banks, lane))[Cat(column, bank)] for lane in range(LANES)]


def _entries(banks: data.View[data.ArrayLayout], lane: int) -> Value:
    """The shifts that one lane uses in turn, bank after bank."""
    columns = range(BLOCK_SIDE)
    return Cat(*(banks[bank][BLOCK_SIDE * column + lane] for bank in range(BANKS) for column in columns))


class ShiftQuantizer(wiring.Component):
    """``q = sat8(round(c / 2**shift))`` on a column of 8 coefficients per cycle.

    Parameters
    ----------
    config
        ``rounding`` is used: ``half_away`` (to nearest, ties away from zero) or ``trunc`` (toward zero).

    Ports
    -----
    i
        Stream of columns of 8 coefficients, ``signed(12)``.
    o
        Stream of columns of 8 quantised values, ``signed(8)``.
    shifts
        The tables, each constant while a block passes that uses it.
    bank
        The table of the column in ``i``.

    Latency 1 cycle, one transfer per cycle. Columns are counted from reset; a job is a whole number of blocks.
    """

    i: stream.Interface
    o: stream.Interface
    shifts: Any
    bank: Signal

    latency = latencies.SHIFT_QUANTIZER

    def __init__(self, config: CduConfig) -> None:
        self.rounding = config.rounding_mode
        super().__init__(
            {
                "i": In(stream.Signature(lanes(config.coefficient_bits))),
                "o": Out(stream.Signature(Beat)),
                "shifts": In(ShiftBanks),
                "bank": In(range(BANKS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        shifts = _shifts_of_column(m, self.shifts, self.bank, self.i.valid & self.i.ready)
        for lane in range(LANES):
            coefficient, shift = self.i.payload[lane], shifts[lane]
            # Both modes add an offset and shift arithmetically: 2**shift - 1 to negative numbers rounds toward zero;
            # half a step, less one for negative numbers, rounds ties away from zero.
            step = Signal(1 << SHIFT_BITS, name=f"step{lane}")
            m.d.comb += step.eq(1 << shift)
            if self.rounding is Rounding.TRUNC:
                offset = Mux(coefficient[-1], step - 1, 0)
            else:
                offset = Mux(step[0], 0, (step >> 1) - coefficient[-1])
            biased = Signal(signed(len(coefficient) + 1), name=f"biased{lane}")
            m.d.comb += biased.eq(coefficient + offset[: 1 << SHIFT_BITS])
            quantized = Ranged.of(biased >> shift).saturated(VALUE_BITS)
            m.d.comb += self.o.payload[lane].eq(registered(m, advance, quantized, f"q{lane}"))
        return m


class InverseShiftQuantizer(wiring.Component):
    """``c = sat12(q << shift)`` on a column of 8 values per cycle.

    In units with GMC ``|c| = sat12((|q| << shift) + (point << shift >> 3))`` where q is not 0 (docs/reference/bitstream.md,
    section 5). Legitimate streams never saturate without a point; a corrupted one gives coefficients that the inverse DCT
    accepts.

    Ports
    -----
    i
        Stream of columns of 8 quantised values, ``signed(8)``.
    o
        Stream of columns of 8 coefficients, ``signed(12)``.
    shifts
        The tables, each constant while a block passes that uses it.
    bank
        The table of the column in ``i``.
    point
        Its reconstruction point, 0 to 4 eighths of a step (only in units with GMC).

    Latency 1 cycle, one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface
    shifts: Any
    bank: Signal
    point: Signal

    latency = latencies.SHIFT_QUANTIZER

    def __init__(self, config: CduConfig) -> None:
        self.coefficient_bits = config.coefficient_bits
        self.has_point = config.has_gmc
        super().__init__(
            {
                "i": In(stream.Signature(Beat)),
                "o": Out(stream.Signature(lanes(self.coefficient_bits))),
                "shifts": In(ShiftBanks),
                "bank": In(range(BANKS)),
                **({"point": In(POINT_BITS)} if self.has_point else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        shifts = _shifts_of_column(m, self.shifts, self.bank, self.i.valid & self.i.ready)
        widest = (1 << SHIFT_BITS) - 1
        for lane in range(LANES):
            value, shift = self.i.payload[lane], shifts[lane]
            shifted = Signal(range(VALUE_MIN << widest, (VALUE_MAX << widest) + 1), name=f"shifted{lane}")
            m.d.comb += shifted.eq(value << shift)
            whole: Value = shifted
            if self.has_point:
                offset = Signal(range((MAX_POINT << widest >> POINT_BITS) + 1), name=f"offset{lane}")
                m.d.comb += offset.eq(Mux(value.any(), (self.point << shift) >> POINT_BITS, 0))
                # Away from 0: plus the offset, or plus its complement and one
                sign = value[-1]
                whole = shifted + Cat(offset ^ sign.replicate(len(offset)), sign).as_signed() + sign
            limited = Ranged.of(whole).saturated(self.coefficient_bits)
            m.d.comb += self.o.payload[lane].eq(registered(m, advance, limited, f"c{lane}"))
        return m
