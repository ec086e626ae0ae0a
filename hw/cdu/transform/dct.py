"""Forward DCT: the 8-point pass, and the 8x8 transform made of two passes and a transposer (JPEG-ACT, "DCT")."""

from __future__ import annotations

from amaranth.hdl import Module, Shape, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.dct import basis, constant, pass_shifts

from cdu.parts.streams import lanes, pipeline
from cdu.parts.widths import Ranged
from cdu.transform.constant_multiplier import Cut, products
from cdu.transform.transposer import Transposer


class DctPass(wiring.Component):
    """One 8-point forward DCT per cycle: ``o = round_half_up(basis(const_bits) @ i / 2**shift)``.

    The input butterflies of Loeffler, Ligtenberg and Moschytz split the transform into an even half, two of whose outputs
    need no multiplication, and an odd half; what remains are products with six constants, built of shared additions.

    Parameters
    ----------
    input_bits
        Width of the signed inputs.
    const_bits
        Fraction bits of the constants.
    shift
        Right shift of the results.
    registered
        Whether the results pass a register. Without one they suit a block that begins with registers.
    stages
        0, or 1 for registers amid the products.

    Ports: ``i``, ``o`` streams of 8 signed values. Latency 2 cycles, 1 without the output register, and ``stages`` more; one
    transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, input_bits: int, const_bits: int, shift: int, registered: bool = True, stages: int = 0) -> None:
        self.input_bits, self.const_bits, self.shift, self.registered = input_bits, const_bits, shift, registered
        self.stages = stages
        self.latency = (2 if registered else 1) + stages
        self.output_bits = pass_output_bits(input_bits, const_bits, shift)
        super().__init__({"i": In(stream.Signature(lanes(input_bits))), "o": Out(stream.Signature(lanes(self.output_bits)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        c = {k: constant(k, self.const_bits) for k in (1, 2, 3, 5, 6, 7)}

        # 1: butterflies
        x = [Ranged.of(self.i.payload[n]) for n in range(8)]
        sums = [(x[n] + x[7 - n]) for n in range(4)]
        odd = [(x[n] - x[7 - n]).register(m, advance, f"odd{n}") for n in range(4)]
        outer, inner = sums[0] + sums[3], sums[1] + sums[2]
        mean = (outer + inner).register(m, advance, "mean")
        middle = (outer - inner).register(m, advance, "middle")
        even = [(sums[0] - sums[3]).register(m, advance, "even0"), (sums[1] - sums[2]).register(m, advance, "even1")]

        # 2: products, summed and rounded
        even_cut, odd_cut = (Cut(advance, before=0, behind=behind) if self.stages else None for behind in (2, 3))
        e0, e1 = (products(m, value, (c[2], c[6]), f"even{n}", even_cut) for n, value in enumerate(even))
        d0, d1, d2, d3 = (products(m, value, (c[1], c[3], c[5], c[7]), f"odd{n}", odd_cut) for n, value in enumerate(odd))
        if self.stages:
            mean, middle = mean.register(m, advance, "mean_cut"), middle.register(m, advance, "middle_cut")
        totals = (
            mean << self.const_bits,
            (d0[c[1]] + d1[c[3]]) + (d2[c[5]] + d3[c[7]]),
            e0[c[2]] + e1[c[6]],
            (d0[c[3]] - d1[c[7]]) - (d2[c[1]] + d3[c[5]]),
            middle << self.const_bits,
            (d0[c[5]] - d1[c[1]]) + (d2[c[7]] + d3[c[3]]),
            e0[c[6]] - e1[c[2]],
            (d0[c[7]] - d1[c[5]]) + (d2[c[3]] - d3[c[1]]),
        )
        for k, total in enumerate(totals):
            rounded = total.round_half_up(self.shift)
            result = rounded.register(m, advance, f"y{k}") if self.registered else rounded
            m.d.comb += self.o.payload[k].eq(result.value)
        return m


def pass_output_bits(input_bits: int, const_bits: int, shift: int) -> int:
    """Width that holds every result of a pass over inputs of the full range of ``input_bits``."""
    least, most = -(1 << (input_bits - 1)), (1 << (input_bits - 1)) - 1
    half = (1 << shift) >> 1
    lows, highs = [], []
    for row in basis(const_bits):
        up, down = sum(entry for entry in row if entry > 0), sum(entry for entry in row if entry < 0)
        lows.append((up * least + down * most + half) >> shift)
        highs.append((up * most + down * least + half) >> shift)
    return Shape.cast(range(min(lows), max(highs) + 1)).width


class Dct(wiring.Component):
    """8x8 forward DCT, one row in and one column of coefficients out per cycle, a block every 8 cycles without a bubble.

    Parameters
    ----------
    config
        ``sample_bits``, ``const_bits``, ``pass1_bits`` and ``dct_stages`` are used.

    Ports
    -----
    i
        Stream of rows of 8 samples, ``signed(sample_bits)``, top row first.
    o
        Stream of columns of 8 coefficients of the orthonormal transform, ``signed(sample_bits + 4)``, horizontal frequency
        0 first, vertical frequency 0 in lane 0. |coefficient| <= 2**(sample_bits + 2).

    Latency 11 cycles from the first row to the first column, and 2 * ``dct_stages``.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        shifts = pass_shifts(config.const_bits, config.pass1_bits)
        stages = config.dct_stages
        self.rows = DctPass(config.sample_bits, config.const_bits, shifts[0], registered=False, stages=stages)
        self.columns = DctPass(self.rows.output_bits, config.const_bits, shifts[1], stages=stages)
        self.coefficient_bits = config.sample_bits + 4
        super().__init__(
            {
                "i": In(stream.Signature(lanes(config.sample_bits))),
                "o": Out(stream.Signature(lanes(self.coefficient_bits))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.rows = self.rows
        m.submodules.columns = self.columns
        m.submodules.transposer = transposer = Transposer(self.rows.output_bits)
        connect(m, flipped(self.i), self.rows.i)
        connect(m, self.rows.o, transposer.i)
        connect(m, transposer.o, self.columns.i)
        m.d.comb += [
            self.o.valid.eq(self.columns.o.valid),
            self.columns.o.ready.eq(self.o.ready),
            *(self.o.payload[k].eq(_narrow(self.columns.o.payload[k], self.coefficient_bits)) for k in range(8)),
        ]
        return m


def _narrow(value: Value, bits: int) -> Value:
    """The low bits of a value that is known to fit them."""
    return value[:bits].as_signed() if len(value) > bits else value
