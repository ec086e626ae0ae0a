"""Wide sums and comparisons, against plain integers."""

from random import Random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from cdu.parts.wide_sum import LateCarry, below, wide_difference, wide_sum, within


def _numbers(rng, bits):
    """Return random numbers of every length, and those at which a carry passes the middle or the end."""
    middle = 1 << (bits // 2)
    return [0, 1, middle - 1, middle, middle + 1, (1 << bits) - 1, *(rng.getrandbits(rng.randint(1, bits)) for _ in range(40))]


@pytest.mark.parametrize("bits", [7, 40])
def test_sums_and_comparisons(bits):
    rng = Random(bits)
    left, right, limit = Signal(bits), Signal(bits), Signal(4)
    made = (
        (wide_sum(left, right, bits), lambda a, b, _: (a + b) % (1 << bits)),
        (wide_difference(left, right, bits), lambda a, b, _: (a - b) % (1 << bits)),
        (below(left, limit), lambda a, _, c: int(a < c)),
        (within(left, limit), lambda a, _, c: int(a <= c)),
    )

    async def drive(context):
        for a in _numbers(rng, bits):
            for b in _numbers(rng, bits):
                c = min(a, 15) if rng.random() < 0.5 else rng.getrandbits(4)
                context.set(left, a)
                context.set(right, b)
                context.set(limit, c)
                for value, expected in made:
                    assert context.get(value) == expected(a, b, c)

    simulator = Simulator(Module())
    simulator.add_testbench(drive)
    simulator.run()


@pytest.mark.parametrize("bits", [7, 40])
def test_a_late_carry_is_never_lost(bits):
    """Sums of sums, also where the number rests or gets a new value while its carry waits."""
    rng = Random(bits)
    layout = LateCarry(bits)
    number, addend, fresh, offset = Signal(layout), Signal(bits), Signal(bits), Signal(bits // 2 + 1)
    load, add = Signal(), Signal()
    m = Module()
    with m.If(load):
        m.d.sync += number.eq(layout.of(fresh))
    with m.Elif(add):
        m.d.sync += number.eq(layout.plus(number, addend))

    async def drive(context):
        expected = 0
        for _ in range(20):
            for value in _numbers(rng, bits):
                rest, start = rng.random() < 0.2, rng.random() < 0.1
                moved = rng.getrandbits(len(offset))
                for signal, setting in ((addend, value), (fresh, value), (offset, moved), (load, start), (add, not rest)):
                    context.set(signal, setting)
                assert context.get(layout.value(number, offset)) % (1 << bits) == (expected + moved) % (1 << bits)
                await context.tick()
                expected = value if start else expected if rest else (expected + value) % (1 << bits)

    simulator = Simulator(m)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.run()
