"""Inverse SFPR: integers back to floating point with one multiplier per lane (JPEG-ACT, decompression)."""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import latencies
from cdu_spec.affine import DECODED_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES, VALUE_BITS
from cdu_spec.modes import Dtype

from cdu.parts.multiplier import beside_product, multiplied
from cdu.parts.streams import float_beat, lanes, pipeline, registered
from cdu.values.sfpr import FP32_BIAS, FP32_BITS, FP32_EXPONENT_BITS, FP32_FRACTION_BITS


def integer_bits(config: CduConfig) -> int:
    """Bits of the integers that become values: 8, or as many as a decoded code may have."""
    return DECODED_BITS if config.has_affine else VALUE_BITS


class ScaledBeat(data.StructLayout):
    """8 integers, ``values``, and their common reciprocal ``scale`` (float32 pattern)."""

    def __init__(self, config: CduConfig) -> None:
        super().__init__({"values": lanes(integer_bits(config)), "scale": FP32_BITS})


class InverseSfpr(wiring.Component):
    """``x' = float32(q * r)`` with one rounding (half to even), then rounded to the format of the unit, 8 values per cycle.

    With 16 bits or fewer of the reciprocal an 8-bit integer times it is a float32 number, and only the format rounds.

    Parameters
    ----------
    config
        ``value_format`` of the outputs; ``modes``: the integers of affine ones are wider; ``reciprocal_bits``;
        ``multiplier_stages``.

    Ports
    -----
    i
        Stream of :class:`ScaledBeat`. The reciprocal is positive and between 2**-120 and 2**120 (2**110 in affine modes), so
        that no float32 result is subnormal or infinite; significand bits behind ``config.used_reciprocal_bits`` are not looked
        at. A wide integer is not the least one of its width.
    o
        Stream of 8 values as bit patterns.

    Latency 3 cycles, 4 with a format narrower than float32, and ``multiplier_stages``; one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.dtype = config.dtype
        #: Bits of a magnitude.
        self.bits = DECODED_BITS - 1 if config.has_affine else VALUE_BITS
        self.reciprocal_bits = config.used_reciprocal_bits
        self.stages = config.multiplier_stages
        self.latency = latencies.inverse_sfpr(config)
        super().__init__(
            {
                "i": In(stream.Signature(ScaledBeat(config))),
                "o": Out(stream.Signature(float_beat(self.dtype))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.bits
        advance = pipeline(m, self.i, self.o, self.latency)
        scale = registered(m, advance, self.i.payload.scale, "scale1")
        significand = Cat(scale[FP32_FRACTION_BITS + 1 - self.reciprocal_bits : FP32_FRACTION_BITS], Const(1, 1))
        exponent = scale[FP32_FRACTION_BITS : FP32_FRACTION_BITS + FP32_EXPONENT_BITS]
        exponent2 = beside_product(partial(registered, m, advance), exponent, "exponent2", self.stages)
        for lane in range(LANES):

            def stage(value: Value, name: str, lane: int = lane) -> Value:
                return registered(m, advance, value, f"lane{lane}_{name}")

            beside = partial(beside_product, stage, stages=self.stages)

            # 1: magnitudes, shifted up to have their leading one at the top
            q = self.i.payload["values"][lane]
            magnitude = Signal(bits, name=f"magnitude{lane}")
            m.d.comb += magnitude.eq(Mux(q[-1], -q, q))
            zeros, normalized = _normalized(m, magnitude, f"normalized{lane}")
            zeros1, normalized1 = stage(zeros, "zeros1"), stage(normalized, "normalized1")
            sign1, zero1 = stage(q[-1], "sign1"), stage(q == 0, "zero1")

            # 2: multiply
            product = multiplied(m, stage, normalized1, significand, self.stages)
            zeros2, sign2, zero2 = beside(zeros1, "zeros2"), beside(sign1, "sign2"), beside(zero1, "zero2")

            # 3: the product has as many significant bits as its factors together or one less; round to 24
            top = product[-1]
            leading = Mux(top, product, product << 1)[: len(product)]
            lost = max(0, len(product) - (FP32_FRACTION_BITS + 1))
            mantissa = Cat(Const(0, FP32_FRACTION_BITS + 1 - len(product) + lost), leading[lost:])
            up = leading[lost - 1] & (leading[: lost - 1].any() | mantissa[0]) if lost else Const(0)
            biased = Signal(FP32_EXPONENT_BITS, name=f"biased{lane}")
            m.d.comb += biased.eq(exponent2 + (bits - 1) + top - zeros2)
            # A carry out of the fraction makes it zero and counts the exponent up, as it must be.
            packed = stage(Mux(zero2, 0, Cat(mantissa[:-1], biased) + up)[: FP32_BITS - 1], "packed")
            value: Value = Cat(packed, stage(sign2, "sign3"))

            # 4: round to a narrower format
            if self.dtype is not Dtype.FP32:
                value = stage(Cat(narrowed(m, packed, self.dtype, f"narrow{lane}"), value[-1]), "value")
            m.d.comb += self.o.payload[lane].eq(value)
        return m


def _normalized(m: Module, magnitude: Value, name: str) -> tuple[Value, Value]:
    """Leading zeros, and the magnitude without them; of 0 anything and 0."""
    zeros = []
    for distance in (1 << place for place in reversed(range((len(magnitude) - 1).bit_length()))):
        empty, shifted = Signal(name=f"{name}_empty{distance}"), Signal(len(magnitude), name=f"{name}_{distance}")
        m.d.comb += [
            empty.eq(~magnitude[-distance:].any()),
            shifted.eq(Mux(empty, magnitude << distance, magnitude)),
        ]
        zeros.append(empty)
        magnitude = shifted
    return Cat(*reversed(zeros)), magnitude


def narrowed(m: Module, magnitude: Value, dtype: Dtype, name: str) -> Value:
    """A float32 magnitude (normal, zero or infinity) rounded half to even to a narrower format, as a pattern without sign."""
    dropped = Dtype.FP32.fraction_bits - dtype.fraction_bits
    if dtype is Dtype.BF16:
        up = magnitude[dropped - 1] & (magnitude[: dropped - 1].any() | magnitude[dropped])
        return (magnitude[dropped:] + up)[: dtype.bits - 1]
    bias = (1 << (dtype.exponent_bits - 1)) - 1
    exponent = magnitude[Dtype.FP32.fraction_bits :]
    least_normal = FP32_BIAS - bias + 1
    # Subnormal results: the significand, leading one included, moves right until its exponent is that of the subnormals.
    reach = dtype.fraction_bits + 2
    right = Mux(exponent >= least_normal, 0, Mux(exponent < least_normal - reach, reach, (least_normal - exponent)[:4]))[:4]
    wide = Cat(Const(0, reach), magnitude[: Dtype.FP32.fraction_bits], exponent != 0)
    shifted = Signal(len(wide), name=f"{name}_shifted")
    m.d.comb += shifted.eq(wide >> right)
    cut = reach + dropped
    up = shifted[cut - 1] & (shifted[: cut - 1].any() | shifted[cut])
    # The hidden bit, when it is still there, adds one to an exponent field that is one short.
    field = Mux(exponent >= least_normal, exponent - least_normal, 0)[: dtype.exponent_bits + 1]
    rounded = Signal(dtype.bits, name=f"{name}_rounded")
    m.d.comb += rounded.eq((field << dtype.fraction_bits) + shifted[cut:] + up)
    infinity = ((1 << dtype.exponent_bits) - 1) << dtype.fraction_bits
    overflow = (exponent > FP32_BIAS + bias) | (rounded >= infinity)
    return Mux(overflow, infinity, rounded)[: dtype.bits - 1]
