"""Counters: exact over the carry between their halves, and at their greatest value."""

from random import Random

from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from cdu.control.counter import counter, event_counter, wide_counter


def test_the_high_half_goes_with_the_low_half_of_the_cycle_before():
    rng = Random(1)
    m, increment, clear = Module(), Signal(32), Signal()
    low, high = wide_counter(m, "total", increment, clear)
    simulator = Simulator(m)
    simulator.add_clock(1e-8)

    async def bench(ctx):
        total = before = 0
        for _ in range(3000):
            step, empty = rng.choice((0, 1, rng.getrandbits(32), (1 << 32) - 1)), rng.random() < 0.01
            ctx.set(increment, step)
            ctx.set(clear, empty)
            await ctx.tick()
            before, total = (0, 0) if empty else (total, total + step)
            assert ctx.get(low) == total % (1 << 32)
            assert ctx.get(high) == before >> 32

    simulator.add_testbench(bench)
    simulator.run()


def test_a_counter_of_one_register_starts_again():
    rng = Random(2)
    m, increment, clear = Module(), Signal(32), Signal()
    count = counter(m, "total", increment, clear)
    simulator = Simulator(m)
    simulator.add_clock(1e-8)

    async def bench(ctx):
        total = 0
        for _ in range(1000):
            step, empty = rng.getrandbits(32), rng.random() < 0.01
            ctx.set(increment, step)
            ctx.set(clear, empty)
            await ctx.tick()
            total = 0 if empty else (total + step) % (1 << 32)
            assert ctx.get(count) == total

    simulator.add_testbench(bench)
    simulator.run()


def test_an_event_counter_stops_at_its_greatest_value():
    m, event, clear, preset = Module(), Signal(), Signal(), Signal()
    count = event_counter(m, "events", event, clear)
    with m.If(preset):
        m.d.sync += count.eq((1 << 32) - 3)
    simulator = Simulator(m)
    simulator.add_clock(1e-8)

    async def bench(ctx):
        ctx.set(event, 1)
        for expected in (1, 2, 3):
            await ctx.tick()
            assert ctx.get(count) == expected
        ctx.set(preset, 1)
        await ctx.tick()
        ctx.set(preset, 0)
        seen = []
        for _ in range(5):
            seen.append(ctx.get(count))
            await ctx.tick()
        assert seen == [(1 << 32) - 3, (1 << 32) - 2, *[(1 << 32) - 1] * 3]
        ctx.set(clear, 1)
        await ctx.tick()
        assert ctx.get(count) == 0

    simulator.add_testbench(bench)
    simulator.run()
