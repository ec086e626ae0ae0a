"""SFPR, scaled fix-point precision reduction: floating point to int8 with one multiplier per lane (JPEG-ACT, "SFPR")."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import latencies
from cdu_spec.affine import BASE_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES, VALUE_BITS
from cdu_spec.modes import Dtype

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
        Stream of 8 values as bit patterns, their common multiplier ``scale`` (float32 pattern, positive, between 2**-120
        and 2**120, lower significand bits zero), ``binary``, and ``absent``: zeros take the place of the values; where
        results have 16 bits, ``narrow``: saturate to 8; with mode blpa ``lower``: floor instead of round, and subtract
        ``offset``.
    o
        Stream of 8 values, ``signed(8)`` or ``signed(16)``, and ``nonfinite``: an input of this beat was infinite (it
        saturates) or NaN (it becomes 0, before the offset). Where ``binary`` was set a value is 1 if x > 0 and 0 if not (BRC).

    Latency 3 cycles, 4 with mode blpa, and ``multiplier_stages``; one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.latency = latencies.sfpr(config)
        fields = {
            "values": float_beat(config.dtype),
            "scale": FP32_BITS,
            "binary": 1,
            "absent": 1,
            **({"narrow": 1} if config.has_affine else {}),
            **({"lower": 1, "offset": signed(BASE_BITS)} if config.has_offsets else {}),
        }
        super().__init__(
            {
                "i": In(stream.Signature(data.StructLayout(fields))),
                "o": Out(stream.Signature(data.StructLayout({"values": lanes(config.value_bits), "nonfinite": 1}))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, values = self.config, self.i.payload
        advance = pipeline(m, self.i, self.o, self.latency)

        def delayed(value: Value, name: str, cycles: int) -> Value:
            for cycle in range(cycles):
                value = registered(m, advance, value, f"{name}{cycle + 1}")
            return value

        binary = delayed(values.binary, "binary", self.latency)
        narrow = delayed(values.narrow, "narrow", self.latency - 1) if config.has_affine else Const(1, 1)
        lower = delayed(values.lower, "lower", self.latency - 2) if config.has_offsets else Const(0, 1)
        offset = delayed(values.offset, "offset", self.latency - 1) if config.has_offsets else Const(0, 1)
        nonfinite = Signal(LANES)
        for number in range(LANES):
            lane = _Lane(m, advance, config, number)
            x = lane.unpack(values.values[number])
            product = lane.multiply(x, values.scale, values.absent)
            rounded = lane.round(lane.align(product), lower)
            m.d.comb += [
                self.o.payload["values"][number].eq(lane.saturate(rounded, offset, narrow, binary)),
                nonfinite[number].eq((x.nan | x.infinite) & ~values.absent),
            ]
        m.d.comb += self.o.payload.nonfinite.eq(delayed(nonfinite.any(), "nonfinite", self.latency))
        return m


@dataclass(frozen=True)
class _Product:
    """Behind stage 1: ``|x * k| = significand * 2**(exponent_sum - 2 * bias - fraction bits of both)``."""

    significand: Value
    exponent_sum: Value
    normal: Value  #: x has its leading one
    infinite: Value
    nan: Value
    negative: Value
    positive: Value  #: x > 0


@dataclass(frozen=True)
class _Aligned:
    """Behind stage 2: ``|x * k|`` as an integer with a guard bit and a sticky bit below it, large enough to saturate."""

    magnitude: Value
    negative: Value
    positive: Value


@dataclass(frozen=True)
class _Rounded:
    """Behind stage 3 (the number in it): ``x * k`` as an integer."""

    number: Signal
    positive: Value


class _Lane:
    """The arithmetic of one value; a method for each stage, which ends with the registers behind it."""

    def __init__(self, m: Module, advance: Signal, config: CduConfig, number: int) -> None:
        self._m, self._advance, self._number = m, advance, number
        self._config, self._bits = config, config.value_bits
        #: Exponent sum (both biased) at which the top bit of a product weighs 2**bits: anything above saturates.
        self._most = 2 * FP32_BIAS + self._bits - 1
        #: Distance to the exponent sum below which a product is less than a half.
        self._reach = self._bits + 1
        #: Leading bits of a product that can be part of the result or its guard bit; the others only make it inexact.
        self._window_bits = self._bits + 2

    def _stage(self, value: Value, name: str) -> Value:
        return registered(self._m, self._advance, value, f"lane{self._number}_{name}")

    def unpack(self, bits: Value) -> Any:
        """The fields of the value (:class:`Unpacked`)."""
        return unpack(self._m, bits, self._config.dtype, f"x{self._number}")

    def multiply(self, x: Any, scale: Value, absent: Value) -> _Product:
        """Stage 1, with ``multiplier_stages`` one more: the significands' product, the exponents' sum.

        What is absent goes on as a NaN, which becomes 0: so no mask stands in front of the multiplier.
        """
        stages, scale_bits = self._config.multiplier_stages, self._config.scale_bits
        significand = Cat(scale[FP32_FRACTION_BITS - (scale_bits - 1) : FP32_FRACTION_BITS], Const(1, 1))
        exponent = scale[FP32_FRACTION_BITS : FP32_FRACTION_BITS + FP32_EXPONENT_BITS]
        beside = partial(beside_product, self._stage, stages=stages)
        return _Product(
            significand=multiplied(self._m, self._stage, x.significand, significand, stages),
            exponent_sum=beside(x.exponent + exponent, "exponent_sum"),
            normal=beside(x.significand[-1], "normal"),
            infinite=beside(x.infinite & ~absent, "infinite"),
            nan=beside(x.nan | absent, "nan"),
            negative=beside(x.sign, "sign1"),
            positive=beside(~x.sign & x.significand.any() & ~x.nan & ~absent, "positive1"),
        )

    def align(self, product: _Product) -> _Aligned:
        """Stage 2: shift right by what the exponents say; only from least to most it lies between a half and saturation."""
        least = self._most - self._reach
        right = Signal(range(self._reach + 1), name=f"right{self._number}")
        self._m.d.comb += right.eq((self._most - product.exponent_sum)[: len(right)])
        missing = max(0, self._window_bits - len(product.significand))  # narrow formats have shorter products
        leading = Cat(Const(0, missing), product.significand)
        window: Value = Cat(leading[: -self._window_bits].any(), leading[-self._window_bits :])
        lost: Value = Const(0, 1)
        for place in range(len(right)):
            distance = 1 << place
            lost = lost | (right[place] & window[:distance].any())
            window = Mux(right[place], window >> distance, window)
        shifted = Cat(window[0] | lost, window[1:])
        huge = product.infinite | (product.normal & ~product.nan & (product.exponent_sum > self._most))
        tiny = product.nan | (product.exponent_sum < least)
        # Tiny values round to zero, but down if negative.
        trace = product.significand.any() & ~product.nan if self._config.has_offsets else Const(0, 1)
        bits = self._window_bits + 1
        return _Aligned(
            magnitude=self._stage(Mux(huge, (1 << bits) - 1, Mux(tiny, trace, shifted))[:bits], "fixed"),
            negative=self._stage(product.negative, "sign2"),
            positive=self._stage(product.positive, "positive2"),
        )

    def round(self, fixed: _Aligned, lower: Value) -> _Rounded:
        """Stage 3: round half to even (down if ``lower``) and restore the sign."""
        sticky, guard, whole = fixed.magnitude[0], fixed.magnitude[1], fixed.magnitude[2:]
        number = Signal(signed(len(whole) + 2), name=f"number{self._number}")
        up = guard & (sticky | whole[0])
        if self._config.has_offsets:
            up = Mux(lower, fixed.negative & (guard | sticky), up)
        if self._config.has_affine:
            # Minus (whole + up) is the complement of whole plus the complement of up.
            self._m.d.comb += number.eq((whole ^ fixed.negative.replicate(len(whole) + 2)).as_signed() + (up ^ fixed.negative))
        else:
            magnitude = Signal(len(whole) + 1, name=f"magnitude{self._number}")
            self._m.d.comb += [magnitude.eq(whole + up), number.eq(Mux(fixed.negative, -magnitude, magnitude))]
        return _Rounded(number, self._stage(fixed.positive, "positive3"))

    def saturate(self, rounded: _Rounded, offset: Value, narrow: Value, binary: Value) -> Value:
        """Stage 3's end, with offsets stage 4: subtract the offset, saturate; or whether x > 0."""
        total, positive = Ranged.of(rounded.number), rounded.positive
        if self._config.has_offsets:
            total = Ranged.of(self._stage(rounded.number, "floor")) - Ranged.of(offset)
            positive = self._stage(positive, "positive4")
        limited = total.saturated(self._bits)
        if self._config.has_affine:
            limited = Mux(narrow, total.saturated(VALUE_BITS), limited)
        return Mux(binary, positive, self._stage(limited, "value"))
