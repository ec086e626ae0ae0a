"""A product, a bit of a factor per cycle: exact, with its overflow, and as late as its page says."""

from random import Random

from amaranth.sim import Simulator
from cdu.dma.records import VALUES_BITS
from cdu.dma.serial_multiplier import SerialMultiplier

_LONGEST = (1 << VALUES_BITS) - 1


def test_products_and_their_overflow():
    rng, multiplier = Random(1), SerialMultiplier(VALUES_BITS)
    simulator = Simulator(multiplier)
    simulator.add_clock(1e-8)
    ends = [0, 1, 0xFFFF, 0x10000, _LONGEST]
    pairs = [(a, b) for a in ends for b in ends]
    pairs += [(rng.getrandbits(rng.randint(1, VALUES_BITS)), rng.getrandbits(rng.randint(1, VALUES_BITS))) for _ in range(300)]

    async def bench(ctx):
        for a, b in pairs:
            ctx.set(multiplier.a, a)
            ctx.set(multiplier.b, b)
            ctx.set(multiplier.start, 1)
            await ctx.tick()
            ctx.set(multiplier.start, 0)
            cycles = 1
            await ctx.delay(1e-9)
            while not ctx.get(multiplier.done):
                await ctx.tick()
                await ctx.delay(1e-9)
                cycles += 1
            assert ctx.get(multiplier.product) == a * b % (1 << VALUES_BITS)
            assert ctx.get(multiplier.overflow) == (a * b >> VALUES_BITS != 0)
            assert b.bit_length() + 1 <= cycles <= b.bit_length() + 1 + 2 * VALUES_BITS // 16
            await ctx.tick()
            assert not ctx.get(multiplier.busy)

    simulator.add_testbench(bench)
    simulator.run()
