"""Inverse of the affine quantiser: codes back to integers, exactly (docs/reference/bitstream.md, "Affine modes")."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import latencies
from cdu_spec.affine import BASE_BITS, CODE_BITS, MANTISSA_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES, VALUE_BITS
from cdu_spec.modes import Mode

from cdu.parts.streams import Beat, pipeline, registered
from cdu.values.inverse_sfpr import ScaledBeat, integer_bits
from cdu.words import SCALE_BITS, Quantizer, Range, is_one_of


class CodedBeat(data.StructLayout):
    """8 codes and the parameters of their decoding.

    ``values``: codes (unsigned, in affine modes) or int8; ``mode``, ``quantizer``; ``range`` of the block (only with modes that
    have ranges); ``offset`` of the channel (only with mode blpa); ``scale``, which passes through.
    """

    def __init__(self, config: CduConfig) -> None:
        super().__init__(
            {
                "values": Beat,
                "mode": Mode,
                "quantizer": Quantizer(),
                **({"range": Range()} if config.has_ranges else {}),
                **({"offset": signed(BASE_BITS)} if config.has_offsets else {}),
                "scale": SCALE_BITS,
            }
        )


class AffineDequantizer(wiring.Component):
    """Compute ``y = Z + code * D`` of 8 values per cycle; values of modes that are not affine pass through.

    In mode blpa the channel's offset is added, and half a step (rounded down) for the quantiser's rounding down.

    Parameters
    ----------
    config
        ``modes``: parts that no mode needs are left out.

    Ports
    -----
    i
        Stream of :class:`CodedBeat`.
    o
        Stream of :class:`~cdu.values.inverse_sfpr.ScaledBeat`. Exact for every valid range; results of invalid ranges are
        truncated to the width.

    Latency: 2 cycles. One transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    latency = latencies.AFFINE_DEQUANTIZER

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__({"i": In(stream.Signature(CodedBeat(config))), "o": Out(stream.Signature(ScaledBeat(config)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        beat = self.i.payload
        affine = is_one_of(beat["mode"], [mode for mode in self.config.built_modes if mode.is_affine])
        low, mantissa, exponent = self._range(m, beat, affine)
        low1, exponent1 = registered(m, advance, low, "low1"), registered(m, advance, exponent, "exponent1")
        scale1 = registered(m, advance, beat["scale"], "scale1")
        m.d.comb += self.o.payload["scale"].eq(registered(m, advance, scale1, "scale2"))
        for lane in range(LANES):
            # 1: code * m. An int8 is the code of its value plus 128.
            bits = beat["values"][lane].as_unsigned()
            code = Signal(VALUE_BITS, name=f"code{lane}")
            m.d.comb += code.eq(bits ^ (~affine << (VALUE_BITS - 1))[:VALUE_BITS])
            product = registered(m, advance, code if mantissa is None else code * mantissa, f"product{lane}")

            # 2: Z + code * m * 2**e
            result = Signal(signed(integer_bits(self.config)), name=f"result{lane}")
            m.d.comb += result.eq(low1 + (product << exponent1)[: len(result)].as_signed())
            m.d.comb += self.o.payload["values"][lane].eq(registered(m, advance, result, f"value{lane}"))
        return m

    def _range(self, m: Module, beat: Any, affine: Value) -> tuple[Signal, Value | None, Value]:
        """Return Z with all terms added to it, and mantissa (None: always 1) and exponent of D."""
        modes, mode, quantizer = self.config.built_modes, beat["mode"], beat["quantizer"]
        low = Signal(signed(integer_bits(self.config)))
        found = Const(0)  # Z and D are in the header
        centred: Value = Const(0)  # a code is the middle of the values rounded to it
        addend: Value = Const(0)
        if self.config.has_ranges:
            whole = is_one_of(mode, [ranged for ranged in modes if ranged.has_ranges])
            channel = (mode == Mode.DIVISION) & ~quantizer["block_range"]
            found, centred = whole & ~channel, channel
            addend = Mux(whole, beat["range"]["low"], 0)
        if self.config.has_offsets:
            blpa = mode == Mode.BLPA
            centred = centred | blpa
            addend = Mux(blpa, beat["offset"], addend)

        # -2**(bits - 1 + step_log2), ones from that place on; half a step is one more bit below them
        step = quantizer["step_log2"]
        reach = Signal(range(BASE_BITS))
        with m.Switch(quantizer["bits_log2"]):
            for number, bits in enumerate(CODE_BITS):
                with m.Case(number):
                    m.d.comb += reach.eq(step + bits - 1)
        ones = (Const(-1, signed(len(low))) << Mux(affine, reach, VALUE_BITS - 1))[: len(low)]
        half = (((Const(1, 1) << step) >> 1) & centred.replicate(BASE_BITS))[: len(low)]
        m.d.comb += low.eq(addend + Mux(found, 0, ones | half).as_signed())
        known = step & affine.replicate(len(step))
        if not self.config.has_ranges:
            return low, None, known
        mantissa = Signal(MANTISSA_BITS)
        m.d.comb += mantissa.eq(Mux(found, beat["range"]["mantissa"], 1))
        return low, mantissa, Mux(found, beat["range"]["exponent"], known)
