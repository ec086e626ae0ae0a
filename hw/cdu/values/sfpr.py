"""SFPR, scaled fix-point precision reduction: floating point to int8 with one multiplier per lane (JPEG-ACT, "SFPR")."""

from __future__ import annotations

from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.affine import BASE_BITS
from cdu_spec.bitstream import Dtype
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES, VALUE_BITS

from cdu.parts.multiplier import beside_product, multiplied
from cdu.parts.streams import float_beat, lanes, pipeline, registered
from cdu.parts.widths import Ranged

#: Fields of a float32, and of every scale on its way through the unit.
FP32_BIAS = 127
FP32_FRACTION_BITS = Dtype.FP32.fraction_bits
FP32_EXPONENT_BITS = Dtype.FP32.exponent_bits
FP32_BITS = Dtype.FP32.bits


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


def latency(config: CduConfig) -> int:
    """Cycles from the input of :class:`Sfpr` to its output."""
    return (4 if config.has_offsets else 3) + config.multiplier_stages


class Sfpr(wiring.Component):
    """``q = sat8(round_half_even(x * k))``, exactly, on 8 values per cycle.

    With an affine mode the result has 16 bits: ``sat16(round_half_even(x * k))`` or, in mode blpa,
    ``sat16(floor(x * k) - offset)``.

    Parameters
    ----------
    config
        ``value_format`` of the inputs and ``scale_bits``, the significand bits of k that are used, hidden bit included;
        ``modes``: the width of the result and whether there are offsets; ``multiplier_stages``.

    Ports
    -----
    i
        Stream of 8 values as bit patterns, their common multiplier ``scale`` (float32 pattern, positive, between 2**-120 and
        2**120, lower significand bits zero), and ``binary``; where results have 16 bits, ``narrow``: saturate to 8; with mode
        blpa ``lower``: floor instead of round, and subtract ``offset``.
    o
        Stream of 8 values, ``signed(8)`` or ``signed(16)``, and ``nonfinite``: an input of this beat was infinite (it
        saturates) or NaN (it becomes 0, before the offset). Where ``binary`` was set a value is 1 if x > 0 and 0 if not (BRC).

    Latency 3 cycles, 4 with mode blpa, and ``multiplier_stages``; one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.dtype = config.dtype
        self.scale_bits = config.scale_bits
        self.bits = config.value_bits
        self.wide = config.has_affine
        self.has_offsets = config.has_offsets
        self.stages = config.multiplier_stages
        self.latency = latency(config)
        fields = {
            "values": float_beat(self.dtype),
            "scale": FP32_BITS,
            "binary": 1,
            **({"narrow": 1} if self.wide else {}),
            **({"lower": 1, "offset": signed(BASE_BITS)} if self.has_offsets else {}),
        }
        super().__init__(
            {
                "i": In(stream.Signature(data.StructLayout(fields))),
                "o": Out(stream.Signature(data.StructLayout({"values": lanes(self.bits), "nonfinite": 1}))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        #: Exponent sum (both biased) at which the top bit of a product weighs 2**bits: anything above saturates.
        most = 2 * FP32_BIAS + self.bits - 1
        #: Distance to the exponent sum below which a product is less than a half.
        reach = self.bits + 1
        least = most - reach
        #: Leading bits of a product that can be part of the result or its guard bit; the others only make it inexact.
        window_bits = self.bits + 2

        scale = self.i.payload.scale
        scale_significand = Cat(scale[FP32_FRACTION_BITS - (self.scale_bits - 1) : FP32_FRACTION_BITS], Const(1, 1))
        scale_exponent = scale[FP32_FRACTION_BITS : FP32_FRACTION_BITS + FP32_EXPONENT_BITS]

        def delayed(name: str, cycles: int) -> Value:
            """A field of the input some cycles later."""
            value: Value = self.i.payload[name]
            for cycle in range(cycles):
                value = registered(m, advance, value, f"{name}{cycle + 1}")
            return value

        binary = delayed("binary", self.latency)
        narrow = delayed("narrow", self.latency - 1) if self.wide else Const(1, 1)
        lower = delayed("lower", self.latency - 2) if self.has_offsets else Const(0, 1)
        offset = delayed("offset", self.latency - 1) if self.has_offsets else Const(0, 1)
        flags = Signal(LANES)
        for lane in range(LANES):

            def stage(value: Value, name: str, lane: int = lane) -> Value:
                return registered(m, advance, value, f"lane{lane}_{name}")

            beside = partial(beside_product, stage, stages=self.stages)

            # 1: multiply; |x * k| = product * 2**(exponent_sum - 2 * bias - fraction bits of both)
            x = unpack(m, self.i.payload.values[lane], self.dtype, f"x{lane}")
            product = multiplied(m, stage, x.significand, scale_significand, self.stages)
            exponent_sum = beside(x.exponent + scale_exponent, "exponent_sum")
            normal, infinite, nan = beside(x.significand[-1], "normal"), beside(x.infinite, "infinite"), beside(x.nan, "nan")
            sign1 = beside(x.sign, "sign1")
            positive = beside(~x.sign & x.significand.any() & ~x.nan, "positive1")
            m.d.comb += flags[lane].eq(x.nan | x.infinite)

            # 2: align; only exponents from LEAST to MOST give something between a half and the saturated value
            right = Signal(range(reach + 1), name=f"right{lane}")
            m.d.comb += right.eq((most - exponent_sum)[: len(right)])
            leading = Cat(Const(0, max(0, window_bits - len(product))), product)  # narrow formats have shorter products
            window: Value = Cat(leading[:-window_bits].any(), leading[-window_bits:])
            lost: Value = Const(0, 1)
            for place in range(len(right)):
                distance = 1 << place
                lost = lost | (right[place] & window[:distance].any())
                window = Mux(right[place], window >> distance, window)
            aligned = Cat(window[0] | lost, window[1:])
            huge = infinite | (normal & ~nan & (exponent_sum > most))
            tiny = nan | (exponent_sum < least)
            # What is tiny rounds to zero, but down if it is negative.
            trace = product.any() & ~nan if self.has_offsets else Const(0, 1)
            fixed = stage(Mux(huge, (1 << (window_bits + 1)) - 1, Mux(tiny, trace, aligned))[: window_bits + 1], "fixed")
            sign2, positive = stage(sign1, "sign2"), stage(positive, "positive2")

            # 3: round half to even or down, restore the sign, saturate
            sticky, guard, whole = fixed[0], fixed[1], fixed[2:]
            number = Signal(signed(len(whole) + 2), name=f"number{lane}")
            up = guard & (sticky | whole[0])
            if self.has_offsets:
                up = Mux(lower, sign2 & (guard | sticky), up)
            if self.wide:
                # Minus (whole + up) is the complement of whole plus the complement of up.
                m.d.comb += number.eq((whole ^ sign2.replicate(len(whole) + 2)).as_signed() + (up ^ sign2))
            else:
                magnitude = Signal(len(whole) + 1, name=f"magnitude{lane}")
                m.d.comb += [magnitude.eq(whole + up), number.eq(Mux(sign2, -magnitude, magnitude))]
            positive = stage(positive, "positive3")

            # 4, with offsets: subtract them
            total = Ranged.of(number)
            if self.has_offsets:
                total = Ranged.of(stage(number, "floor")) - Ranged.of(offset)
                positive = stage(positive, "positive4")
            limited = total.saturated(self.bits)
            if self.wide:
                limited = Mux(narrow, total.saturated(VALUE_BITS), limited)
            value = stage(limited, "value")
            m.d.comb += self.o.payload["values"][lane].eq(Mux(binary, positive, value))
        seen = flags.any()
        for number_of_stage in range(self.latency):
            seen = registered(m, advance, seen, f"nonfinite{number_of_stage + 1}")
        m.d.comb += self.o.payload.nonfinite.eq(seen)
        return m
