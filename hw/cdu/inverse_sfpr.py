"""Inverse SFPR: int8 back to floating point with one multiplier per lane (JPEG-ACT, decompression)."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.bitstream import Dtype
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES, VALUE_BITS

from cdu.sfpr import FP32_BIAS, FP32_BITS, FP32_EXPONENT_BITS, FP32_FRACTION_BITS
from cdu.streams import Beat, float_beat, pipeline, registered


class InverseSfpr(wiring.Component):
    """``x' = float32(q * r)`` with one rounding (half to even), then rounded to the format of the unit, 8 values per cycle.

    Parameters
    ----------
    config
        ``value_format`` of the outputs.

    Ports
    -----
    i
        Stream of 8 values, ``signed(8)``, and their common reciprocal ``scale`` (float32 pattern, positive, between
        2**-120 and 2**120, so that no float32 result is subnormal or infinite).
    o
        Stream of 8 values as bit patterns.

    Latency 3 cycles, one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    latency = 3

    def __init__(self, config: CduConfig) -> None:
        self.dtype = config.dtype
        super().__init__(
            {
                "i": In(stream.Signature(data.StructLayout({"values": Beat, "scale": FP32_BITS}))),
                "o": Out(stream.Signature(float_beat(self.dtype))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        scale = self.i.payload.scale
        significand = Cat(scale[:FP32_FRACTION_BITS], Const(1, 1))
        exponent = scale[FP32_FRACTION_BITS : FP32_FRACTION_BITS + FP32_EXPONENT_BITS]
        exponent1 = registered(m, advance, exponent, "exponent1")
        for lane in range(LANES):

            def stage(value: Value, name: str, lane: int = lane) -> Value:
                return registered(m, advance, value, f"lane{lane}_{name}")

            # 1: multiply magnitudes, the value's shifted up to have its leading one at the top
            q = self.i.payload["values"][lane]
            magnitude = Signal(VALUE_BITS, name=f"magnitude{lane}")
            m.d.comb += magnitude.eq(Mux(q[-1], -q, q))
            zeros, normalized = Signal(range(VALUE_BITS), name=f"zeros{lane}"), Signal(VALUE_BITS, name=f"normalized{lane}")
            for place in range(VALUE_BITS):  # the highest set bit wins
                with m.If(magnitude[place]):
                    shift = VALUE_BITS - 1 - place
                    m.d.comb += [zeros.eq(shift), normalized.eq(magnitude << shift)]
            product = stage(normalized * significand, "product")
            zeros1, sign1, zero1 = stage(zeros, "zeros1"), stage(q[-1], "sign1"), stage(q == 0, "zero1")

            # 2: the product has 31 or 32 significant bits; round to 24
            top = product[-1]
            mantissa = Mux(top, product[VALUE_BITS:], product[VALUE_BITS - 1 : -1])
            guard = Mux(top, product[VALUE_BITS - 1], product[VALUE_BITS - 2])
            sticky = product[: VALUE_BITS - 2].any() | (top & product[VALUE_BITS - 2])
            up = guard & (sticky | mantissa[0])
            biased = Signal(FP32_EXPONENT_BITS, name=f"biased{lane}")
            m.d.comb += biased.eq(exponent1 + (VALUE_BITS - 1) + top - zeros1)
            # A carry out of the fraction makes it zero and counts the exponent up, as it must be.
            packed = stage(Mux(zero1, 0, Cat(mantissa[:-1], biased) + up)[: FP32_BITS - 1], "packed")
            sign2 = stage(sign1, "sign2")

            # 3: round to the output format
            narrow = _narrow(m, packed, self.dtype, f"narrow{lane}")
            m.d.comb += self.o.payload[lane].eq(stage(Cat(narrow, sign2), "value"))
        return m


def _narrow(m: Module, magnitude: Value, dtype: Dtype, name: str) -> Value:
    """A normal float32 magnitude (or zero) rounded half to even to another format, as bit pattern without the sign."""
    if dtype is Dtype.FP32:
        return magnitude
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
