"""Mode mx: values to slices of payload and back, past the lanes."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES
from cdu_spec.modes import Dtype, Mode
from cdu_spec.mx import MX_FORMATS

from cdu.parts.mx_words import BLOCK_ROWS, SCALE_BITS
from cdu.parts.streams import registered
from cdu.parts.width_converter import WidthConverter
from cdu.values.inverse_sfpr import narrowed
from cdu.values.mx_decoder import MxDecoder
from cdu.values.mx_encoder import MxEncoder
from cdu.values.sfpr import FP32_BITS, FP32_EXPONENT_BITS, FP32_FRACTION_BITS, unpack
from cdu.words import MxWord, Slice, ValueWord, beats_of_bytes, bytes_of_beats, value_bytes


class MxPacker(wiring.Component):
    """Code words of P rows to slices of ``config.mx_rows`` coded rows.

    A block of MX is four rows. Of wider words every half has an encoder of its own; the last word of a job may have one block.

    Parameters
    ----------
    config
        P, S, ``value_format`` and ``mx_rows``.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.MxWord`; a job has a whole number of blocks.
    o
        Stream of :class:`~cdu.words.Slice`, each a block of its own with ``tag.mode`` and ``tag.last``.
    nonfinite
        High for a cycle when an infinite value or NaN is taken.

    Latency: that of :class:`~cdu.values.mx_encoder.MxEncoder`. ``mx_rows`` rows per cycle.
    """

    i: stream.Interface
    o: stream.Interface
    nonfinite: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config, self.rows = config, config.mx_rows
        words, slices = stream.Signature(MxWord(config)), stream.Signature(Slice(config))
        super().__init__({"i": In(words), "o": Out(slices), "nonfinite": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows, dtype, word = self.rows, self.config.dtype, self.i.payload
        group, several = min(rows, BLOCK_ROWS), rows > BLOCK_ROWS
        encoders = [MxEncoder(group, beside=2 if several else 1) for _ in range(rows // group)]

        # A word in parts of as many rows; all encoders move together.
        parts_of_word = self.config.port_beats // rows
        part = Signal(range(parts_of_word))
        final = Signal()
        takes = Signal()
        chosen = Signal(rows * self.config.beat_bits)
        m.d.comb += chosen.eq(word["values"].as_value().word_select(part, len(chosen)))
        wide = [widened(m, chosen.word_select(lane, dtype.bits), dtype, f"x{lane}") for lane in range(rows * LANES)]
        m.d.comb += [
            final.eq(word["count"] <= (part + 1) * rows if parts_of_word > 1 else 1),
            takes.eq(self.i.valid & encoders[0].i.ready),
            self.i.ready.eq(encoders[0].i.ready & final),
            self.nonfinite.eq(takes & Cat(value[FP32_FRACTION_BITS:-1].all() for value in wide).any()),
        ]
        with m.If(takes):
            m.d.sync += part.eq(Mux(final, 0, part + 1))
        for number, encoder in enumerate(encoders):
            m.submodules[f"encoder{number}"] = encoder
            m.d.comb += [
                encoder.i.valid.eq(self.i.valid),
                encoder.i.payload["values"].eq(Cat(wide[number * group * LANES : (number + 1) * group * LANES])),
                encoder.i.payload["format"].eq(word["scaling"]["format"]),
                encoder.i.payload["rceil"].eq(word["scaling"]["rceil"]),
                encoder.i.payload["beside"].eq(Cat(word["last"] & final, word["count"] <= BLOCK_ROWS if several else [])),
                encoder.o.ready.eq(self.o.ready),
            ]

        # Scales and codes side by side
        coded = [encoder.o.payload for encoder in encoders]
        last, *half = coded[0]["beside"]
        out: Any = self.o.payload
        m.d.comb += [
            self.o.valid.eq(encoders[0].o.valid),
            out["ends"].eq(1),
            out["rows"].eq(rows),
            out["tag"]["mode"].eq(Mode.MX),
            out["tag"]["last"].eq(last),
        ]
        with m.Switch(coded[0]["format"]):
            for kind in MX_FORMATS.values():
                with m.Case(kind.number):
                    parts = [Cat(one["scale"], one["codes"][: group * LANES * kind.bits]) for one in coded]
                    if rows < BLOCK_ROWS:
                        heads = coded[0]["heads"]
                        m.d.comb += [
                            out["data"].eq(Mux(heads, parts[0], parts[0][SCALE_BITS:])),
                            out["count"].eq(rows * kind.bits + heads),
                        ]
                    else:
                        (short,) = half or [Const(0, 1)]
                        m.d.comb += [
                            out["data"].eq(Cat(parts)),
                            out["count"].eq(Mux(short, kind.row_bytes(BLOCK_ROWS), kind.row_bytes(rows))),
                        ]
        return m


class MxUnpacker(wiring.Component):
    """Decode slices of ``config.mx_rows`` coded rows to words of P rows, the inverse of :class:`MxPacker`.

    Values beyond the number format become its greatest number.

    Parameters
    ----------
    config
        P, S, ``value_format`` and ``mx_rows``.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.Slice` of jobs of mode mx, ``heads`` where it begins with a scale.
    o
        Stream of :class:`~cdu.words.ValueWord`.

    Latency: 1 cycle. ``mx_rows`` rows per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.config, self.rows = config, config.mx_rows
        super().__init__({"i": In(stream.Signature(Slice(config))), "o": Out(stream.Signature(ValueWord(config)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows, part = self.rows, self.i.payload
        group = min(rows, BLOCK_ROWS)
        decoders = [MxDecoder(group) for _ in range(rows // group)]
        advance, number = decoders[0].i.ready, part["tag"]["how"]["mx"]["format"]
        heads = part["tag"]["heads"] if rows < BLOCK_ROWS else Const(1, 1)
        bodies = [Mux(heads, part["data"][SCALE_BITS:], part["data"])]
        scales = [part["data"][:SCALE_BITS]]
        if len(decoders) > 1:
            second = Signal(len(part["data"]) - SCALE_BITS)
            with m.Switch(number):
                for kind in MX_FORMATS.values():
                    with m.Case(kind.number):
                        m.d.comb += second.eq(part["data"][8 * kind.block_bytes :])
            scales.append(second[:SCALE_BITS])
            bodies.append(second[SCALE_BITS:])
        values: list[Value] = []
        for place, decoder in enumerate(decoders):
            m.submodules[f"decoder{place}"] = decoder
            row = decoder.i.payload
            m.d.comb += [
                decoder.i.valid.eq(self.i.valid),
                row["scale"].eq(scales[place]),
                row["codes"].eq(bodies[place]),
                row["heads"].eq(heads),
                row["format"].eq(number),
            ]
            lanes = enumerate(decoder.o.payload, len(values))
            values += [limited(m, bits, self.config.dtype, f"y{lane}") for lane, bits in lanes]
        count, last = (
            registered(m, advance, value, name) for value, name in ((part["rows"], "count"), (part["tag"]["last"], "last"))
        )

        m.submodules.converter = converter = WidthConverter(rows * self.config.beat_bits // 8, value_bytes(self.config))
        m.d.comb += [
            self.i.ready.eq(advance),
            converter.i.valid.eq(decoders[0].o.valid),
            *(decoder.o.ready.eq(converter.i.ready) for decoder in decoders),
            converter.i.payload["data"].eq(Cat(values)),
            converter.i.payload["count"].eq(bytes_of_beats(self.config, count)),
            converter.i.payload["last"].eq(last),
            self.o.valid.eq(converter.o.valid),
            converter.o.ready.eq(self.o.ready),
            self.o.payload["values"].eq(converter.o.payload["data"]),
            self.o.payload["count"].eq(beats_of_bytes(self.config, converter.o.payload["count"])),
            self.o.payload["last"].eq(converter.o.payload["last"]),
        ]
        return m


def widened(m: Module, bits: Value, dtype: Dtype, name: str) -> Value:
    """Return the float32 pattern of the same value."""
    if dtype is not Dtype.FP16:
        return Cat(Const(0, FP32_BITS - dtype.bits), bits)
    fields = unpack(m, bits, dtype, name)
    exponent = Mux(fields.significand.any(), fields.exponent, 0) | (fields.infinite | fields.nan).replicate(FP32_EXPONENT_BITS)
    return Cat(Const(0, FP32_FRACTION_BITS - dtype.fraction_bits), fields.significand[:-1], exponent, bits[-1])


def limited(m: Module, bits: Value, dtype: Dtype, name: str) -> Value:
    """Return a float32 pattern (normal, zero, infinity or a quiet NaN) in a format, limited to its greatest number."""
    magnitude = bits[:-1]
    nan = magnitude[FP32_FRACTION_BITS - 1 :].all()
    pattern = magnitude if dtype is Dtype.FP32 else narrowed(m, magnitude, dtype, name)
    fraction, exponent = pattern[: dtype.fraction_bits], pattern[dtype.fraction_bits :]
    beyond = exponent.all() & ~nan
    kept = fraction | beyond.replicate(dtype.fraction_bits)
    # With `beyond` these bits are set; if they were the ones that it is computed from, Verilator would see a loop in a word.
    upper = exponent[1:] if dtype is Dtype.FP32 else exponent[1:] | beyond.replicate(len(exponent) - 1)
    return Cat(kept[:-1], kept[-1] | nan, exponent[0] & ~beyond, upper, bits[-1])
