"""Inverse DCT: the 8-point pass, and the 8x8 transform made of two passes and a transposer (JPEG-ACT, decompression)."""

from __future__ import annotations

from amaranth.hdl import Module, Shape
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.dct import basis, constant, pass_shifts

from cdu.parts.streams import lanes, pipeline
from cdu.parts.widths import Ranged
from cdu.transform.constant_multiplier import Cut, products
from cdu.transform.transposer import Transposer


class IdctPass(wiring.Component):
    """Compute an 8-point inverse DCT per cycle: ``o = round_half_up(basis(const_bits).T @ i / 2**shift)``.

    The forward graph is reversed: products first, then the sums of the even and of the odd half, then the butterflies.

    Parameters
    ----------
    input_bits
        Width of the signed inputs; every combination of inputs is computed without overflow.
    const_bits
        Fraction bits of the constants.
    shift
        Right shift of the results.
    saturate_bits
        Limit the results to this width; without it the output is as wide as the greatest result.
    stages
        0, or 1 for registers behind the sums of pairs of products, which are in front of those of the halves.

    Ports: ``i``, ``o`` streams of 8 signed values. Latency 3 cycles and ``stages`` more, one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, input_bits: int, const_bits: int, shift: int, saturate_bits: int | None = None, stages: int = 0) -> None:
        self.input_bits, self.const_bits, self.shift, self.stages = input_bits, const_bits, shift, stages
        self.latency = 3 + stages
        self.output_bits = saturate_bits or pass_output_bits(input_bits, const_bits, shift)
        super().__init__({"i": In(stream.Signature(lanes(input_bits))), "o": Out(stream.Signature(lanes(self.output_bits)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        c = {k: constant(k, self.const_bits) for k in (1, 2, 3, 5, 6, 7)}
        y = [Ranged.of(self.i.payload[k]) for k in range(8)]

        # 1: products, few multiples of which are registered. The multiplexers of a transposer in front take as long as two
        # additions. Behind the registers: the other multiples, added in pairs, in a stage of their own if there is one.
        cut = Cut(advance, before=2, behind=1 if self.stages else 2)
        y2, y6 = (products(m, y[k], (c[2], c[6]), f"y{k}", cut) for k in (2, 6))
        y1, y3, y5, y7 = (products(m, y[k], (c[1], c[3], c[5], c[7]), f"y{k}", cut) for k in (1, 3, 5, 7))

        def pair(value: Ranged, name: str) -> Ranged:
            return value.register(m, advance, name) if self.stages else value

        def beside(value: Ranged, name: str) -> Ranged:
            return pair(value.register(m, advance, f"{name}_cut"), name)

        # Half a unit of the result goes in with the mean, from where it reaches all results.
        bias, low_bias = divmod(1 << self.shift >> 1, 1 << self.const_bits)
        mean = (beside(y[0] + y[4] + bias, "mean") << self.const_bits) + low_bias
        middle = (beside(y[0] - y[4] + bias, "middle") << self.const_bits) + low_bias
        outer, inner = pair(y2[c[2]] + y6[c[6]], "outer"), pair(y2[c[6]] - y6[c[2]], "inner")
        odd_pairs = (
            (pair(y1[c[1]] + y3[c[3]], "odd0a"), pair(y5[c[5]] + y7[c[7]], "odd0b")),
            (pair(y1[c[3]] - y3[c[7]], "odd1a"), pair(y5[c[1]] + y7[c[5]], "odd1b")),
            (pair(y1[c[5]] - y3[c[1]], "odd2a"), pair(y5[c[7]] + y7[c[3]], "odd2b")),
            (pair(y1[c[7]] - y3[c[5]], "odd3a"), pair(y5[c[3]] - y7[c[1]], "odd3b")),
        )

        # 2: halves
        even = (mean + outer, middle + inner, middle - inner, mean - outer)
        even_half = [value.register(m, advance, f"even{n}") for n, value in enumerate(even)]
        odd = (a - b if n == 1 else a + b for n, (a, b) in enumerate(odd_pairs))
        odd_half = [value.register(m, advance, f"odd{n}") for n, value in enumerate(odd)]

        # 3: butterflies
        for n in range(4):
            for sample, total in ((n, even_half[n] + odd_half[n]), (7 - n, even_half[n] - odd_half[n])):
                rounded = (total >> self.shift).wire(m, f"rounded{sample}")
                limited = Ranged.of(rounded.saturated(self.output_bits)).register(m, advance, f"x{sample}")
                m.d.comb += self.o.payload[sample].eq(limited.value)
        return m


def pass_output_bits(input_bits: int, const_bits: int, shift: int) -> int:
    """Return a width that holds every result of a pass over inputs of the full range of ``input_bits``."""
    matrix = basis(const_bits)
    gain = max(sum(abs(matrix[k][n]) for k in range(8)) for n in range(8))
    greatest = ((gain << (input_bits - 1)) + ((1 << shift) >> 1)) >> shift
    return Shape.cast(range(-greatest - 1, greatest + 1)).width


class Idct(wiring.Component):
    """Compute an 8x8 inverse DCT, a column of coefficients in and a row of samples out per cycle, a block every 8 cycles.

    Parameters
    ----------
    config
        ``sample_bits``, ``const_bits``, ``pass1_bits`` and ``dct_stages`` are used.

    Ports
    -----
    i
        Stream of columns of 8 coefficients, any ``signed(sample_bits + 4)``, horizontal frequency 0 first.
    o
        Stream of rows of 8 samples, ``signed(sample_bits)``, saturated, top row first.

    Latency 14 cycles from the first column to the first row, and 2 * ``dct_stages``; no bubble between blocks.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        shifts = pass_shifts(config.const_bits, config.pass1_bits)
        coefficient_bits = config.coefficient_bits
        stages = config.dct_stages
        self.columns = IdctPass(coefficient_bits, config.const_bits, shifts[0], stages=stages)
        self.rows = IdctPass(self.columns.output_bits, config.const_bits, shifts[1], config.sample_bits, stages)
        super().__init__(
            {"i": In(stream.Signature(lanes(coefficient_bits))), "o": Out(stream.Signature(lanes(config.sample_bits)))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.columns = self.columns
        m.submodules.rows = self.rows
        m.submodules.transposer = transposer = Transposer(self.columns.output_bits)
        connect(m, flipped(self.i), self.columns.i)
        connect(m, self.columns.o, transposer.i)
        connect(m, transposer.o, self.rows.i)
        connect(m, self.rows.o, flipped(self.o))
        return m
