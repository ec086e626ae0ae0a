"""8x8 DCT that transforms forward or back, for units that compress and decompress by turns (JPEG-ACT, half duplex).

Both matrices between the butterflies, the 4x4 one of the odd half and the rotation of the even half, are symmetric: forward
and inverse pass share them. Forward the butterflies stand before them, inverse behind.
"""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.dct import constant, pass_shifts

from cdu.parts.streams import lanes, pipeline
from cdu.parts.widths import Ranged
from cdu.transform import dct, idct
from cdu.transform.constant_multiplier import Cut, products
from cdu.transform.transposer import Transposer


class TwoWayDctPass(wiring.Component):
    """One 8-point DCT or inverse DCT per cycle, the same integers as :class:`~cdu.transform.dct.DctPass` and ``IdctPass``.

    Parameters
    ----------
    forward_bits, inverse_bits
        Widths of the signed inputs in each direction.
    const_bits
        Fraction bits of the constants.
    shift
        Right shift of the results.
    saturate_bits
        Limit the results of the inverse to this width.
    registered
        Whether the results pass a register. Without one they suit a block that begins with registers.
    stages
        0, or 1 for registers amid the products.

    Ports: ``i``, ``o`` streams of 8 signed values, wide enough for both directions; ``inverse``, the direction, constant
    while anything is inside. Latency 3 cycles, 2 without the output register, and ``stages`` more; one transfer per cycle.
    """

    i: stream.Interface
    o: stream.Interface
    inverse: Signal

    def __init__(
        self,
        forward_bits: int,
        inverse_bits: int,
        const_bits: int,
        shift: int,
        saturate_bits: int | None = None,
        registered: bool = True,
        stages: int = 0,
    ) -> None:
        self.forward_bits, self.inverse_bits = forward_bits, inverse_bits
        self.const_bits, self.shift, self.registered, self.stages = const_bits, shift, registered, stages
        self.latency = (3 if registered else 2) + stages
        self.forward_output_bits = dct.pass_output_bits(forward_bits, const_bits, shift)
        self.inverse_output_bits = saturate_bits or idct.pass_output_bits(inverse_bits, const_bits, shift)
        super().__init__(
            {
                "i": In(stream.Signature(lanes(max(forward_bits, inverse_bits)))),
                "o": Out(stream.Signature(lanes(max(self.forward_output_bits, self.inverse_output_bits)))),
                "inverse": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        c = {k: constant(k, self.const_bits) for k in (1, 2, 3, 5, 6, 7)}
        x = [Ranged.of(self.i.payload[n][: self.forward_bits].as_signed()) for n in range(8)]
        y = [Ranged.of(self.i.payload[k][: self.inverse_bits].as_signed()) for k in range(8)]

        def entry(forward: Ranged, inverse: Ranged, name: str) -> Ranged:
            return either(self.inverse, inverse, forward).register(m, advance, name)

        # 1: forward the butterflies. Half a unit of the result goes in with the mean: inverse it reaches all results.
        bias, low_bias = divmod(1 << self.shift >> 1, 1 << self.const_bits)
        sums = [x[n] + x[7 - n] for n in range(4)]
        odd = [entry(x[n] - x[7 - n], y[2 * n + 1], f"odd{n}") for n in range(4)]
        even = [entry(sums[0] - sums[3], y[2], "even0"), entry(sums[1] - sums[2], y[6], "even1")]
        outer = either(self.inverse, y[0], sums[0] + sums[3]).wire(m, "outer")
        inner = either(self.inverse, y[4], sums[1] + sums[2]).wire(m, "inner")
        mean = (outer + inner).register(m, advance, "mean")
        middle = (outer - inner).register(m, advance, "middle")

        # 2: products with both matrices
        even_cut, odd_cut = (Cut(advance, before=0, behind=behind) if self.stages else None for behind in (1, 2))
        e0, e1 = (products(m, value, (c[2], c[6]), f"even{n}", even_cut) for n, value in enumerate(even))
        d0, d1, d2, d3 = (products(m, value, (c[1], c[3], c[5], c[7]), f"odd{n}", odd_cut) for n, value in enumerate(odd))
        if self.stages:
            mean, middle = mean.register(m, advance, "mean_cut"), middle.register(m, advance, "middle_cut")
        mean, middle = (
            ((value + bias).register(m, advance, f"{name}_biased") << self.const_bits) + low_bias
            for value, name in ((mean, "mean"), (middle, "middle"))
        )
        even = [
            (e0[c[2]] + e1[c[6]]).register(m, advance, "rotated0"),
            (e0[c[6]] - e1[c[2]]).register(m, advance, "rotated1"),
        ]
        odd_totals = (
            (d0[c[1]] + d1[c[3]]) + (d2[c[5]] + d3[c[7]]),
            (d0[c[3]] - d1[c[7]]) - (d2[c[1]] + d3[c[5]]),
            (d0[c[5]] - d1[c[1]]) + (d2[c[7]] + d3[c[3]]),
            (d0[c[7]] - d1[c[5]]) + (d2[c[3]] - d3[c[1]]),
        )
        odd = [total.register(m, advance, f"mixed{n}") for n, total in enumerate(odd_totals)]

        # 3: inverse the butterflies; results
        frequencies = (mean, odd[0], even[0], odd[1], middle, odd[2], even[1], odd[3])
        halves = (mean + even[0], middle + even[1], middle - even[1], mean - even[0])
        samples = [halves[n] + odd[n] for n in range(4)] + [halves[n] - odd[n] for n in (3, 2, 1, 0)]
        bits = self.forward_output_bits
        for k in range(8):
            biased = frequencies[k] if k in (0, 4) else frequencies[k] + (1 << self.shift >> 1)
            forward = Ranged.of((biased >> self.shift).value[:bits].as_signed())
            sample = (samples[k] >> self.shift).wire(m, f"sample{k}")
            result = either(self.inverse, Ranged.of(sample.saturated(self.inverse_output_bits)), forward)
            result = result.register(m, advance, f"result{k}") if self.registered else result
            m.d.comb += self.o.payload[k].eq(result.value)
        return m


def either(condition: Value, first: Ranged, second: Ranged) -> Ranged:
    """The first expression where ``condition`` is high, else the second."""
    return Ranged(Mux(condition, first.value, second.value), min(first.low, second.low), max(first.high, second.high))


class TwoWayDct(wiring.Component):
    """8x8 DCT and inverse DCT by turns, a row (column) in and a column (row) out per cycle, a block every 8 cycles.

    The same results as :class:`~cdu.transform.dct.Dct` and :class:`~cdu.transform.idct.Idct`, with one set of multipliers and
    one transposer.

    Parameters
    ----------
    config
        ``sample_bits``, ``const_bits``, ``pass1_bits`` and ``dct_stages`` are used.

    Ports
    -----
    inverse
        Direction, constant while anything is inside.
    i, o
        Streams as those of Dct when ``inverse`` is low, of Idct when it is high; samples are sign-extended, and at the input
        only their low ``sample_bits`` count.
    empty
        High when all that entered has left.

    Latency 13 cycles from the first row in to the first row out, and 2 * ``dct_stages``; no bubble between blocks.
    """

    i: stream.Interface
    o: stream.Interface
    inverse: Signal
    empty: Signal

    def __init__(self, config: CduConfig) -> None:
        shifts = pass_shifts(config.const_bits, config.pass1_bits)
        samples, coefficients = config.sample_bits, config.coefficient_bits
        stages = config.dct_stages
        self.first = TwoWayDctPass(samples, coefficients, config.const_bits, shifts[0], registered=False, stages=stages)
        middle = self.first.forward_output_bits, self.first.inverse_output_bits
        self.second = TwoWayDctPass(*middle, config.const_bits, shifts[1], samples, stages=stages)
        self.output_bits = samples + 4
        super().__init__(
            {
                "i": In(stream.Signature(lanes(max(samples, coefficients)))),
                "o": Out(stream.Signature(lanes(self.output_bits))),
                "inverse": In(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.first = first = self.first
        m.submodules.second = second = self.second
        m.submodules.transposer = transposer = Transposer(max(first.forward_output_bits, first.inverse_output_bits))
        connect(m, flipped(self.i), first.i)
        connect(m, first.o, transposer.i)
        connect(m, transposer.o, second.i)
        m.d.comb += [
            first.inverse.eq(self.inverse),
            second.inverse.eq(self.inverse),
            self.o.valid.eq(second.o.valid),
            second.o.ready.eq(self.o.ready),
            *(self.o.payload[n].eq(second.o.payload[n][: self.output_bits].as_signed()) for n in range(8)),
        ]

        inside = Signal(range(first.latency + transposer.latency + second.latency + 1))
        entering, leaving = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        with m.If(entering & ~leaving):
            m.d.sync += inside.eq(inside + 1)
        with m.Elif(leaving & ~entering):
            m.d.sync += inside.eq(inside - 1)
        m.d.comb += self.empty.eq(inside == 0)
        return m
