"""MX to floating point: the inverse of :class:`~cdu.values.mx_encoder.MxEncoder`."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import latencies
from cdu_spec.geometry import LANES
from cdu_spec.modes import Dtype
from cdu_spec.mx import MX_FORMATS, SCALE_NAN

from cdu.parts.mx_words import CODE_BITS, CodedRow, constant
from cdu.parts.streams import pipeline, registered

_FRACTION_BITS, _EXPONENT_BITS = Dtype.FP32.fraction_bits, Dtype.FP32.exponent_bits
_INFINITE = (1 << _EXPONENT_BITS) - 1
_UNIT = max(kind.fraction_bits for kind in MX_FORMATS.values())
_FIELD_BITS = max(kind.exponent_bits for kind in MX_FORMATS.values())


class MxDecoder(wiring.Component):
    """8 float32 values per cycle from blocks of MX; the bits are those of :func:`actcodec.golden.mx.decode`.

    Products of codes and scales are exact; those beyond float32 are infinite, subnormal ones zero. Integers, NaN and infinity
    that no encoder makes are decoded as well.

    Parameters
    ----------
    rows
        1, 2 or 4: rows of a block that come as one, in each cycle.

    Ports
    -----
    i
        Stream of :class:`~cdu.parts.mx_words.CodedRow`: rows after one that ``heads`` have its scale. Bits of ``codes`` behind
        those of 8 codes do not matter.
    o
        Stream of 8 values per row as bit patterns.

    Latency 1 cycle, one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    latency = latencies.MX_DECODER

    def __init__(self, rows: int = 1) -> None:
        self.lanes = rows * LANES
        values = data.ArrayLayout(Shape(Dtype.FP32.bits), self.lanes)
        super().__init__({"i": In(stream.Signature(CodedRow(rows))), "o": Out(stream.Signature(values))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        row = self.i.payload
        advance = pipeline(m, self.i, self.o, self.latency)

        # 1: codes of any width in a byte each, and their scale
        codes = [Signal(CODE_BITS, name=f"code{lane}") for lane in range(self.lanes)]
        with m.Switch(row["format"]):
            for kind in MX_FORMATS.values():
                with m.Case(kind.number):
                    m.d.comb += [code.eq(row["codes"].word_select(lane, kind.bits)) for lane, code in enumerate(codes)]
        taken = [registered(m, advance, code, f"code{lane}_1") for lane, code in enumerate(codes)]
        number = registered(m, advance, row["format"], "format")
        scale = registered(m, advance & self.i.valid & row["heads"], row["scale"], "scale")

        # 2: integers times powers of two
        base = Signal(signed(_EXPONENT_BITS + 1))
        m.d.comb += base.eq(scale + constant(m, number, lambda kind: kind.emin - 1, "lowest"))
        for lane, code in enumerate(taken):
            product = _product(m, _element(m, code, number, lane), base, scale == SCALE_NAN, lane)
            m.d.comb += self.o.payload[lane].eq(product)
        return m


@dataclass(frozen=True)
class _Element:
    """Sign, an exponent field if the number is normal, else 0, and the significand; or infinity or NaN."""

    sign: Value
    field: Value
    significand: Value  #: the weight of its bit _UNIT is that of a leading one
    infinite: Value
    nan: Value


def _element(m: Module, code: Value, number: Value, lane: int) -> _Element:
    significand, field = Signal(CODE_BITS, name=f"element{lane}"), Signal(_FIELD_BITS, name=f"field{lane}")
    sign, infinite, nan = Signal(name=f"sign{lane}"), Signal(name=f"infinite{lane}"), Signal(name=f"nan{lane}")
    with m.Switch(number):
        for kind in MX_FORMATS.values():
            with m.Case(kind.number):
                bits = code[: kind.bits - 1]
                m.d.comb += sign.eq(code[kind.bits - 1])
                if kind.is_integer:
                    m.d.comb += significand.eq(Mux(code[-1], -code, code))
                    continue
                m.d.comb += field.eq(bits[kind.fraction_bits :])
                m.d.comb += significand.eq(Cat(Const(0, _UNIT - kind.fraction_bits), bits[: kind.fraction_bits], field.any()))
                # Codes beyond the greatest number
                if kind.has_infinity:
                    m.d.comb += [infinite.eq(bits == kind.greatest + 1), nan.eq(bits > kind.greatest + 1)]
                elif kind.greatest + 1 < 1 << len(bits):
                    m.d.comb += nan.eq(bits > kind.greatest)
    return _Element(sign, field, significand, infinite, nan)


def _product(m: Module, element: _Element, base: Value, scale_is_nan: Value, lane: int) -> Value:
    """The product with a scale as a bit pattern; ``base`` is what its exponent field has on top of the element's."""
    zeros = _leading_zeros(m, element.significand, lane)
    normalized, exponent = (
        Signal(CODE_BITS, name=f"normalized{lane}"),
        Signal(signed(_EXPONENT_BITS + 2), name=f"exponent{lane}"),
    )
    # Others are as if their field were 1 and the significand had moved up to the leading one of normal numbers, and no farther.
    raised = Mux(element.field.any(), element.field, CODE_BITS - _UNIT - zeros)
    m.d.comb += [normalized.eq(element.significand << zeros), exponent.eq(base + raised)]
    fraction = Cat(Const(0, _FRACTION_BITS + 1 - CODE_BITS), normalized[:-1])
    nan = element.nan | scale_is_nan
    value = Signal(Dtype.FP32.bits - 1, name=f"value{lane}")
    with m.If(nan):
        m.d.comb += value.eq(Cat(Const(1 << (_FRACTION_BITS - 1), _FRACTION_BITS), Const(_INFINITE, _EXPONENT_BITS)))
    with m.Elif(element.infinite | (normalized[-1] & (exponent >= _INFINITE))):
        m.d.comb += value.eq(_INFINITE << _FRACTION_BITS)
    with m.Elif(normalized[-1] & (exponent > 0)):
        m.d.comb += value.eq(Cat(fraction, exponent[:_EXPONENT_BITS]))
    return Cat(value, element.sign & ~nan)


def _leading_zeros(m: Module, magnitude: Value, lane: int) -> Value:
    """Zeros in front of the first one; of 0 one less than all bits."""
    zeros = Signal(range(CODE_BITS), name=f"zeros{lane}")
    m.d.comb += zeros.eq(CODE_BITS - 1)
    for place in range(1, CODE_BITS):  # the highest set bit wins
        with m.If(magnitude[place]):
            m.d.comb += zeros.eq(CODE_BITS - 1 - place)
    return zeros
