"""Arithmetic of one value on its way to MX: scale, shifted significand, code (:mod:`actcodec.golden.mx`)."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from cdu_spec.modes import Dtype
from cdu_spec.mx import MX_FORMATS, SCALE_MOST, SCALE_NAN

from cdu.parts.mx_words import CODE_BITS, SCALE_BITS, constant

_FRACTION_BITS, _EXPONENT_BITS = Dtype.FP32.fraction_bits, Dtype.FP32.exponent_bits
#: Fraction bits of the element format with most of them.
_MOST_FRACTION = max(kind.fraction_bits for kind in MX_FORMATS.values())
#: Leading bits of a significand that can be part of a code or its guard bit; the others only make the value inexact.
_WINDOW_BITS = 1 + _MOST_FRACTION + 1
#: Bits of the number of octaves between an element format's greatest number and its smallest normal one.
_FIELD_BITS = max(kind.emax - kind.emin for kind in MX_FORMATS.values()).bit_length()
#: Bits of the number of places by which a window can be shifted without becoming zero.
_PLACES_BITS = (_WINDOW_BITS - 1).bit_length()


class WaitingValue(data.StructLayout):
    """A value while it waits: the bits of a significand that can matter, and a sticky bit for the rest."""

    def __init__(self) -> None:
        super().__init__({"inexact": 1, "fraction": _WINDOW_BITS - 1, "exponent": _EXPONENT_BITS, "sign": 1})


def kept_bits(bits: Value) -> Value:
    """Return a value as :class:`WaitingValue`."""
    return Cat(bits[: _FRACTION_BITS + 1 - _WINDOW_BITS].any(), bits[_FRACTION_BITS + 1 - _WINDOW_BITS :])


def magnitude_key(m: Module, value: Value, number: Value, lane: int) -> Value:
    """Return the part of a magnitude that the scale depends on.

    The key is the exponent and, as its lowest bit, whether the fraction is above that of the format's greatest number; all
    ones for NaN.
    """
    fraction, exponent = value[:_FRACTION_BITS], value[_FRACTION_BITS:-1]
    above = Signal(name=f"above{lane}")
    with m.Switch(number):
        for kind in MX_FORMATS.values():
            with m.Case(kind.number):
                # The greatest number's fraction is a run of ones followed by zeros.
                ones = kind.greatest_fraction.bit_count()
                assert kind.greatest_fraction == ((1 << ones) - 1) << (kind.fraction_bits - ones)
                m.d.comb += above.eq(fraction[-ones:].all() & fraction[:-ones].any())
    key = Signal(1 + _EXPONENT_BITS, name=f"key{lane}")
    m.d.comb += key.eq(Cat(Mux(exponent.all(), fraction.any(), above), exponent))
    return key


@dataclass(frozen=True)
class BlockTerms:
    """Terms that all rows of a block have in common."""

    scale: Value
    lowest: Value  #: biased exponent of the smallest normal elements
    places: Value  #: bits of the window's fraction that an element does not have
    nan: Value

    @classmethod
    def of(cls, m: Module, number: Value, rceil: Value, largest: Value) -> BlockTerms:
        """Return the terms of a block in format ``number`` whose greatest :func:`magnitude_key` is ``largest``."""
        above, exponent = largest[0], largest[1:]
        nan, up = exponent.all() & above, above & rceil & exponent.any()
        emax = constant(m, number, lambda kind: kind.emax, "emax")
        emin = constant(m, number, lambda kind: kind.emin, "emin")
        wanted, scale = Signal(signed(_EXPONENT_BITS + 2), name="wanted"), Signal(SCALE_BITS, name="scale")
        lowest = Signal(signed(_EXPONENT_BITS + 1), name="lowest")
        octaves = constant(m, number, lambda kind: kind.emax - kind.emin, "octaves")
        # The lowest exponent is the scale's plus emin, computed in parallel with the scale, as is the sum for one more.
        m.d.comb += [
            wanted.eq(exponent + Mux(up, 1 - emax, -emax)),
            scale.eq(wanted),
            lowest.eq(exponent + Mux(up, 1 - octaves, -octaves)),
        ]
        with m.If(nan):
            m.d.comb += scale.eq(SCALE_NAN)
        with m.Elif((exponent.all() & rceil) | (wanted > SCALE_MOST)):
            m.d.comb += [scale.eq(SCALE_MOST), lowest.eq(SCALE_MOST + emin)]
        with m.Elif(wanted < 0):
            m.d.comb += [scale.eq(0), lowest.eq(emin)]
        places = constant(m, number, lambda kind: _MOST_FRACTION - kind.fraction_bits, "places")
        return cls(scale, lowest, places, nan)


@dataclass(frozen=True)
class ShiftedValue:
    """A value in steps of its element format, apart from the exponent field."""

    whole: Value  #: significand in steps
    guard: Value
    sticky: Value
    field: Value  #: exponent field to which a leading one of the significand is added
    sign: Value


def shifted_value(m: Module, value: data.View[data.StructLayout], block: BlockTerms, lane: int) -> ShiftedValue:
    """Return the significand shifted so that its lowest bit is a step of the element."""
    exponent, infinite = value["exponent"], value["exponent"].all()
    window: Value = Cat(value["fraction"], Const(1, 1))
    octave = Signal(signed(_EXPONENT_BITS + 1), name=f"octave{lane}")
    m.d.comb += octave.eq(exponent - block.lowest)
    # Subnormal elements: shift by as many places as the value is below the smallest normal number; is nothing left?
    below, stages = octave[-1], _PLACES_BITS
    more = Signal(stages + 1, name=f"more{lane}")
    m.d.comb += more.eq(block.places - octave[:stages])
    places = Mux(below, more[:stages], block.places)
    nothing = block.nan | ~exponent.any() | (below & ~(octave[stages:].all() & more[-1]))
    lost: Value = value["inexact"]
    for stage in range(stages):
        distance = 1 << stage
        moved, dropped = Signal(len(window), name=f"moved{lane}_{distance}"), Signal(name=f"lost{lane}_{distance}")
        m.d.comb += [
            moved.eq(Mux(places[stage], window >> distance, window)),
            dropped.eq(lost | (places[stage] & window[:distance].any())),
        ]
        window, lost = moved, dropped
    # Infinity is treated as the greatest magnitude.
    kept = Mux(nothing, 0, window | infinite.replicate(len(window)))
    field = Mux(nothing | below, 0, octave[:_FIELD_BITS] | infinite.replicate(_FIELD_BITS))
    return ShiftedValue(kept[1:], kept[0], lost, field, value["sign"] & ~block.nan)


def code_of(m: Module, value: ShiftedValue, number: Value, lane: int) -> Value:
    """Return the code, rounded to nearest with ties to even and saturated; sign as the format has it, zeros above."""
    kinds = MX_FORMATS.values()
    is_integer = constant(m, number, lambda kind: kind.is_integer, f"integer{lane}")
    # The greatest integer is not rounded up. Minus (whole + up) is the complement of whole plus the complement of up.
    up = value.guard & (value.sticky | value.whole[0]) & ~value.whole.all()
    minus = is_integer & value.sign
    steps = Signal(CODE_BITS, name=f"steps{lane}")
    m.d.comb += steps.eq((Cat(value.whole, Const(0, 1)) ^ minus.replicate(CODE_BITS)) + (up ^ minus))
    # A leading bit increments the exponent, and a significand of two increments it again.
    leading, wide = Signal(2, name=f"leading{lane}"), Signal(CODE_BITS, name=f"wide{lane}")
    field = Signal(_FIELD_BITS + 1, name=f"field{lane}")
    m.d.comb += field.eq(value.field + leading)
    with m.Switch(number):
        for kind in kinds:
            with m.Case(kind.number):
                if kind.is_integer:
                    m.d.comb += wide.eq(steps)
                else:
                    fraction = steps[: kind.fraction_bits]
                    m.d.comb += [leading.eq(steps[len(fraction) : len(fraction) + 2]), wide.eq(Cat(fraction, field))]
    code = Signal(CODE_BITS, name=f"code{lane}")
    with m.Switch(number):
        for kind in kinds:
            with m.Case(kind.number):
                if kind.is_integer:
                    m.d.comb += code.eq(wide)
                else:
                    limited = Mux(_is_beyond(wide, field[-1], kind.greatest + 1), kind.greatest, wide)
                    m.d.comb += code.eq(Cat(limited[: kind.bits - 1], value.sign))
    return code


def _is_beyond(wide: Value, carry: Value, least: int) -> Value:
    """Return whether a code is ``least`` or more, where ``least`` is a run of ones followed by zeros."""
    zeros = (least & -least).bit_length() - 1
    ones = wide[zeros : least.bit_length()]
    assert (least >> zeros).bit_count() == len(ones)
    return carry | wide[least.bit_length() :].any() | ones.all()
