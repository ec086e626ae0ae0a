"""Affine quantiser of 16-bit integers to codes of 1, 2, 4 or 8 bits (:mod:`cdu_spec.affine`)."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import latencies
from cdu_spec.affine import BASE_BITS, CODE_BITS, FRACTION_BITS, MANTISSA_BITS, RECIPROCAL_SHIFT, SEED_BITS, reciprocal
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, VALUE_BITS
from cdu_spec.modes import Mode
from cdu_spec.randomness import ROUND_CONSTANTS

from cdu.parts.streams import pipeline, registered
from cdu.quantizers.random_bits import STATE_BITS, after_rounds, numbers
from cdu.words import BlockRow, BlockTag, gives_statistics, is_one_of, lane_row

#: Bits of a reciprocal, and of its right shift for the exponent 0 of a normalised mantissa.
_RECIPROCAL_BITS = reciprocal(1 << (MANTISSA_BITS - 1)).bit_length()
_UNIT_SHIFT = RECIPROCAL_SHIFT - FRACTION_BITS
#: Bits of a quotient that matter; any set bit above them saturates the code.
_QUOTIENT_BITS = FRACTION_BITS + VALUE_BITS
#: Rounds of the random number generator in each of three pipeline stages.
_ROUNDS = tuple(range(len(ROUND_CONSTANTS) * part // 3, len(ROUND_CONSTANTS) * (part + 1) // 3) for part in range(3))


class AffineQuantizer(wiring.Component):
    """Compute ``min(B, ((t * inv >> shift) + rho) >> 16)`` with ``t = clamp(x - Z, 0, 65535)`` for 8 values per cycle.

    Values of other modes and statistics pass; of their bits the low 8 are kept.

    Parameters
    ----------
    config
        ``modes``, one of which is affine. Multipliers are built only for modes with ranges, random numbers only for modes that
        round at random.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.BlockRow` of 16-bit values with ranges and the seeds of random numbers, the layout of
        :func:`~cdu.words.lane_row`. Blocks of modes with ranges have 8 rows.
    o
        Stream of :class:`~cdu.words.BlockRow`: unsigned codes, zero-extended; in mode autoquantz codes less half their number,
        in two's complement of the code's width, zero-extended. ``range`` is valid in the first row of a block that ``heads``.
    busy
        A row is in the pipeline.

    Latency: 4 cycles. One row per cycle.
    """

    i: stream.Interface
    o: stream.Interface
    busy: Signal

    latency = latencies.AFFINE_QUANTIZER

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.modes = config.built_modes
        self.ranged = config.has_ranges
        self.draws = config.draws
        super().__init__(
            {
                "i": In(stream.Signature(lane_row(config))),
                "o": Out(stream.Signature(BlockRow(ranged=self.ranged))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = pipeline(m, self.i, self.o, self.latency)
        under_way = Signal(self.latency)
        with m.If(advance):
            m.d.sync += under_way.eq(Cat(self.i.valid, under_way)[: self.latency])
        m.d.comb += self.busy.eq(under_way.any())

        def stage(value: Value, name: str) -> Value:
            return registered(m, advance, value, name)

        row: Any = self.i.payload
        mode, quantizer = row.tag.mode, row.tag.how.affine
        number = Signal(range(BLOCK_SIDE))  # of the row in its block
        with m.If(advance & self.i.valid):
            m.d.sync += number.eq(Mux(row.ends, 0, number + 1))

        # 1: distance from the lower end of the range
        affine = self._is(mode, *(built for built in self.modes if built.is_affine)) & ~gives_statistics(self.config, row.tag)
        inverse, shift = self._step(m, row, affine)
        addend = Signal(signed(BASE_BITS + 2))
        m.d.comb += addend.eq(self._addend(m, row))
        distances = []
        for lane, value in enumerate(row["values"]):
            distance = Signal(signed(BASE_BITS + 3), name=f"distance{lane}")
            clamped = Mux(distance[-1], 0, distance[:BASE_BITS] | distance[BASE_BITS:-1].any().replicate(BASE_BITS))
            m.d.comb += distance.eq(value + addend)
            distances.append(stage(Mux(affine, clamped, value[:VALUE_BITS])[:BASE_BITS], f"distance{lane}_1"))
        inverse1, shift1 = stage(inverse, "inverse1"), stage(shift, "shift1")
        # Values of other modes are limited like codes of 8 bits.
        bits = stage(Mux(affine, quantizer.bits_log2, len(CODE_BITS) - 1), "bits1")
        signed_codes = stage(self._is(mode, Mode.AUTOQUANTZ), "signed1")
        random = stage(affine & quantizer.stochastic & ~self._is(mode, Mode.BLPA), "random1")
        nearest = stage(affine & ~quantizer.stochastic & ~self._is(mode, Mode.BLPA), "nearest1")
        state: Value = Const(0)
        if self.draws:
            counter = Cat(number, row.number)  # of rows of the job, in as many bits as the seed leaves
            state = Cat(counter, Const(0, STATE_BITS - SEED_BITS - len(counter)), row.seed)
        state = self._drawn(m, stage, state, 0)

        # 2: product with the reciprocal
        products = [stage(self._product(distance, inverse1), f"product{lane}") for lane, distance in enumerate(distances)]
        shift2, bits, signed_codes = stage(shift1, "shift2"), stage(bits, "bits2"), stage(signed_codes, "signed2")
        random, nearest = stage(random, "random2"), stage(nearest, "nearest2")
        state = self._drawn(m, stage, state, 1)

        # 3: right shift of the product
        quotients = []
        for lane, product in enumerate(products):
            shifted = Signal(len(product), name=f"shifted{lane}")
            m.d.comb += shifted.eq(product >> shift2)
            quotients.append(stage(Cat(shifted[:_QUOTIENT_BITS], shifted[_QUOTIENT_BITS:].any()), f"quotient{lane}"))
        bits, signed_codes = stage(bits, "bits3"), stage(signed_codes, "signed3")
        random, nearest = stage(random, "random3"), stage(nearest, "nearest3")
        state = self._drawn(m, stage, state, 2)

        # 4: rounding
        drawn = numbers(state) if self.draws else [Const(0, FRACTION_BITS)] * LANES
        half = Cat(Const(0, FRACTION_BITS - 1), nearest)
        codes = []
        for lane, quotient in enumerate(quotients):
            rho = (drawn[lane] & random.replicate(FRACTION_BITS)) | half
            codes.append(stage(_code(m, quotient, rho, bits, signed_codes, lane), f"code{lane}_4"))
        m.d.comb += [ours.eq(code) for ours, code in zip(self.o.payload["values"], codes, strict=True)]

        tag, ends = Value.cast(row.tag), row.ends
        for place in range(self.latency):
            tag, ends = stage(tag, f"tag{place + 1}"), stage(ends, f"ends{place + 1}")
        m.d.comb += [self.o.payload.tag.eq(data.View(BlockTag(), tag)), self.o.payload.ends.eq(ends)]
        if self.ranged:
            # The next range comes 8 rows later, when the row that needs this one has left.
            begins = advance & self.i.valid & row.tag.heads & (number == 0)
            m.d.comb += self.o.payload.range.eq(registered(m, begins, Value.cast(row.range), "range"))
        return m

    def _is(self, mode: Value, *modes: Mode) -> Value:
        """Return whether ``mode`` is one of those of ``modes`` that are built in."""
        return is_one_of(mode, [built for built in modes if built in self.modes])

    def _found(self, row: Any) -> Value:
        """Return whether the step of a row's block comes from a range that was found."""
        by_block: Value = self._is(row.tag.mode, Mode.DIVISION) & row.tag.how.affine.block_range
        return by_block | self._is(row.tag.mode, Mode.ACTNN)

    def _addend(self, m: Module, row: Any) -> Value:
        """Return ``-Z``, where Z is half a range below the mean, below zero, or the least value."""
        quantizer = row.tag.how.affine
        by_mean = self._is(row.tag.mode, Mode.DIVISION) & ~quantizer.block_range
        width = Signal(range(2 << max(CODE_BITS)))  # of the range in steps, its half counts
        with m.Switch(quantizer.bits_log2):
            for number, bits in enumerate(CODE_BITS):
                with m.Case(number):
                    m.d.comb += width.eq(Mux(by_mean, (1 << bits) - 1, 1 << bits))
        half = Signal(BASE_BITS + 1)
        m.d.comb += half.eq((width << quantizer.step_log2) >> 1)
        if not self.ranged:
            return half
        has_low = self._is(row.tag.mode, Mode.DIVISION, Mode.ACTNN)
        low = Mux(has_low, row.range.low, 0).as_signed()
        return Mux(self._found(row), 0, half) - low

    def _step(self, m: Module, row: Any, affine: Value) -> tuple[Value, Value]:
        """Return the reciprocal of the step, and its right shift."""
        step_log2 = row.tag.how.affine.step_log2 & affine.replicate(len(row.tag.how.affine.step_log2))
        one = 1 << (_RECIPROCAL_BITS - 1)
        if not self.ranged:
            return Const(one, _RECIPROCAL_BITS), step_log2
        found = self._found(row)
        mantissa = row.range.mantissa
        normal = Signal(MANTISSA_BITS)
        shift = Signal(range(_UNIT_SHIFT + (1 << len(row.range.exponent))))
        for place in range(MANTISSA_BITS):  # the highest set bit wins
            with m.If(mantissa[place]):
                m.d.comb += [
                    normal.eq(mantissa << (MANTISSA_BITS - 1 - place)),
                    shift.eq(row.range.exponent + (_UNIT_SHIFT - (MANTISSA_BITS - 1 - place))),
                ]
        table = Array(
            Const(reciprocal(value), _RECIPROCAL_BITS) for value in range(1 << (MANTISSA_BITS - 1), 1 << MANTISSA_BITS)
        )
        inverse = table[normal[:-1]]
        return Mux(found, inverse, one)[:_RECIPROCAL_BITS], Mux(found, shift, step_log2)

    def _product(self, distance: Value, inverse: Value) -> Value:
        """Return a product of 32 bits; a reciprocal whose highest bit is set is a power of two."""
        unit = Cat(Const(0, _RECIPROCAL_BITS - 1), distance)
        if not self.ranged:
            return unit
        return Mux(inverse[-1], unit, distance * inverse[:-1])

    def _drawn(self, m: Module, stage: Any, state: Value, part: int) -> Value:
        """Return the state of the random number generator one stage later."""
        return stage(after_rounds(m, state, _ROUNDS[part], "round"), f"state{part + 1}") if self.draws else state


def _code(m: Module, quotient: Value, rho: Value, bits: Value, signed_code: Value, lane: int) -> Value:
    """Round a quotient by the addend ``rho`` to a code, saturated to the bits whose place in ``CODE_BITS`` is ``bits``."""
    total = Signal(_QUOTIENT_BITS + 1, name=f"total{lane}")
    m.d.comb += total.eq(quotient[:_QUOTIENT_BITS] + rho)
    above = quotient[-1] | total[-1]
    code = Signal(VALUE_BITS, name=f"code{lane}")
    with m.Switch(bits):
        for place, width in enumerate(CODE_BITS):
            with m.Case(place):
                whole = total[FRACTION_BITS : FRACTION_BITS + width]
                greatest = above | total[FRACTION_BITS + width : -1].any()
                m.d.comb += code.eq((whole | greatest.replicate(width)) ^ Cat(Const(0, width - 1), signed_code))
    return code
