"""SFPR, scaled fix-point precision reduction: floating point to int8 with one multiplier per lane (JPEG-ACT, "SFPR")."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.bitstream import Dtype
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES, VALUE_BITS

from cdu.streams import Beat, float_beat, pipeline, registered
from cdu.widths import Ranged

#: Fields of a float32, and of every scale on its way through the unit.
FP32_BIAS = 127
FP32_FRACTION_BITS = Dtype.FP32.fraction_bits
FP32_EXPONENT_BITS = Dtype.FP32.exponent_bits
FP32_BITS = Dtype.FP32.bits


#: Exponent sum (both biased) at which the top bit of a product weighs 256: anything above saturates.
_MOST = 2 * FP32_BIAS + VALUE_BITS - 1
#: Distance to the exponent sum below which a product is less than a half.
_REACH = VALUE_BITS + 1
_LEAST = _MOST - _REACH
#: Leading bits of a product that can be part of the result or its guard bit; the others only make it inexact.
_WINDOW = VALUE_BITS + 2


class Unpacked(data.StructLayout):
    """A floating-point value as sign, exponent biased as in float32, and significand with its leading one explicit.

    Subnormal numbers of float32 and bfloat16 keep their leading zeros (with exponent 1): they are far below one unit of
    any permitted scale. Those of float16 are normalised, as widening to float32 does.
    """

    def __init__(self, dtype: Dtype) -> None:
        super().__init__(
            {
                "significand": dtype.fraction_bits + 1,
                "exponent": FP32_EXPONENT_BITS,
                "sign": 1,
                "infinite": 1,
                "nan": 1,
            }
        )


def unpack(m: Module, bits: Value, dtype: Dtype, name: str) -> Any:
    """The fields (:class:`Unpacked`) of a bit pattern, combinationally."""
    fraction = bits[: dtype.fraction_bits]
    exponent = bits[dtype.fraction_bits : -1]
    special, subnormal = exponent.all(), exponent == 0
    fields: Any = Signal(Unpacked(dtype), name=name)
    m.d.comb += [
        fields.sign.eq(bits[-1]),
        fields.infinite.eq(special & (fraction == 0)),
        fields.nan.eq(special & (fraction != 0)),
    ]
    if dtype is Dtype.FP16:
        rebias = FP32_BIAS - ((1 << (dtype.exponent_bits - 1)) - 1)
        m.d.comb += [
            fields.significand.eq(Cat(fraction, Const(1, 1))),
            fields.exponent.eq(exponent + rebias),
        ]
        with m.If(subnormal):
            for place in range(dtype.fraction_bits):  # the highest set bit wins
                zeros = dtype.fraction_bits - place
                with m.If(fraction[place]):
                    m.d.comb += [fields.significand.eq(fraction << zeros), fields.exponent.eq(rebias + 1 - zeros)]
            with m.If(fraction == 0):
                m.d.comb += fields.significand.eq(0)
    else:
        m.d.comb += [
            fields.significand.eq(Cat(fraction, ~subnormal)),
            fields.exponent.eq(Mux(subnormal, 1, exponent)),
        ]
    return fields


class Sfpr(wiring.Component):
    """``q = sat8(round_half_even(x * k))``, exactly, on 8 values per cycle.

    Parameters
    ----------
    config
        ``value_format`` of the inputs and ``scale_bits``, the significand bits of k that are used, hidden bit included.

    Ports
    -----
    i
        Stream of 8 values as bit patterns, their common multiplier ``scale`` (float32 pattern, positive, between 2**-120 and
        2**120, lower significand bits zero), and ``binary``.
    o
        Stream of 8 values, ``signed(8)``, and ``nonfinite``: an input of this beat was infinite (it saturates) or NaN (it
        becomes 0). Where ``binary`` was set a value is 1 if x > 0 and 0 if not (BRC).

    Latency 3 cycles, one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 3

    def __init__(self, config: CduConfig) -> None:
        self.dtype = config.dtype
        self.scale_bits = config.scale_bits
        super().__init__(
            {
                "i": In(
                    stream.Signature(data.StructLayout({"values": float_beat(self.dtype), "scale": FP32_BITS, "binary": 1}))
                ),
                "o": Out(stream.Signature(data.StructLayout({"values": Beat, "nonfinite": 1}))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        scale = self.i.payload.scale
        scale_significand = Cat(scale[FP32_FRACTION_BITS - (self.scale_bits - 1) : FP32_FRACTION_BITS], Const(1, 1))
        scale_exponent = scale[FP32_FRACTION_BITS : FP32_FRACTION_BITS + FP32_EXPONENT_BITS]
        binary1 = registered(m, advance, self.i.payload.binary, "binary1")
        binary2 = registered(m, advance, binary1, "binary2")
        binary3 = registered(m, advance, binary2, "binary3")
        flags = Signal(LANES)
        for lane in range(LANES):

            def stage(value: Value, name: str, lane: int = lane) -> Value:
                return registered(m, advance, value, f"lane{lane}_{name}")

            # 1: multiply; |x * k| = product * 2**(exponent_sum - 2 * bias - fraction bits of both)
            x = unpack(m, self.i.payload.values[lane], self.dtype, f"x{lane}")
            product = stage(x.significand * scale_significand, "product")
            exponent_sum = stage(x.exponent + scale_exponent, "exponent_sum")
            normal, infinite, nan = stage(x.significand[-1], "normal"), stage(x.infinite, "infinite"), stage(x.nan, "nan")
            sign1 = stage(x.sign, "sign1")
            positive1 = stage(~x.sign & x.significand.any() & ~x.nan, "positive1")
            m.d.comb += flags[lane].eq(x.nan | x.infinite)

            # 2: align; only exponents from LEAST to MOST give something between a half and the saturated value
            right = Signal(range(_REACH + 1), name=f"right{lane}")
            m.d.comb += right.eq((_MOST - exponent_sum)[: len(right)])
            window: Value = Cat(product[:-_WINDOW].any(), product[-_WINDOW:])
            lost: Value = Const(0, 1)
            for place in range(len(right)):
                distance = 1 << place
                lost = lost | (right[place] & window[:distance].any())
                window = Mux(right[place], window >> distance, window)
            aligned = Cat(window[0] | lost, window[1:])
            huge = infinite | (normal & ~nan & (exponent_sum > _MOST))
            tiny = nan | (exponent_sum < _LEAST)
            fixed = stage(Mux(huge, (1 << (_WINDOW + 1)) - 1, Mux(tiny, 0, aligned))[: _WINDOW + 1], "fixed")
            sign2, positive2 = stage(sign1, "sign2"), stage(positive1, "positive2")

            # 3: round half to even, restore the sign, saturate
            sticky, guard, whole = fixed[0], fixed[1], fixed[2:]
            magnitude = Signal(len(whole) + 1, name=f"magnitude{lane}")
            m.d.comb += magnitude.eq(whole + (guard & (sticky | whole[0])))
            number = Signal(signed(len(magnitude) + 1), name=f"number{lane}")
            m.d.comb += number.eq(Mux(sign2, -magnitude, magnitude))
            value = stage(Ranged.of(number).saturated(VALUE_BITS), "value")
            positive3 = stage(positive2, "positive3")
            m.d.comb += self.o.payload["values"][lane].eq(Mux(binary3, positive3, value))
        seen = flags.any()
        for number_of_stage in range(self.latency):
            seen = registered(m, advance, seen, f"nonfinite{number_of_stage + 1}")
        m.d.comb += self.o.payload.nonfinite.eq(seen)
        return m
