"""A queue in a memory: order, room, two cycles of latency, one transfer per cycle, and what its memory asks for."""

from collections import deque
from random import Random

import pytest
from amaranth.sim import Simulator
from cdu.parts.ram_fifo import RamFifo


@pytest.mark.parametrize("depth", [2, 5, 8])
@pytest.mark.parametrize(("valid", "ready"), [(1.0, 1.0), (1.0, 0.3), (0.5, 0.5), (0.3, 1.0), (1.0, 0.0)])
def test_it_keeps_as_many_payloads_as_it_is_deep_and_one(depth, valid, ready):
    rng = Random(f"{depth} {valid} {ready}")
    fifo = RamFifo(8, depth)
    simulator = Simulator(fifo)
    simulator.add_clock(1e-8)

    async def bench(ctx):
        kept, most, unread = deque(), 0, None
        for cycle in range(500):
            payload = rng.getrandbits(8)
            ctx.set(fifo.i.valid, rng.random() < valid)
            ctx.set(fifo.i.payload, payload)
            ctx.set(fifo.o.ready, rng.random() < ready)
            await ctx.delay(1e-9)
            if ctx.get(fifo.o.valid):
                held = ctx.get(fifo.o.payload)
                assert held == kept[0]
                assert unread in (None, held), "what is offered holds"
                unread = held
            takes, gives = ctx.get(fifo.i.valid & fifo.i.ready), ctx.get(fifo.o.valid & fifo.o.ready)
            if valid == ready == 1:
                assert takes
                assert gives == (cycle > 1)
            if gives:
                kept.popleft()
                unread = None
            if takes:
                kept.append(payload)
            most = max(most, len(kept))
            await ctx.tick()
        assert most == (2 if ready == 1 else depth + 1)

    simulator.add_testbench(bench)
    simulator.run()


def test_no_word_is_read_in_the_cycle_that_writes_it_or_before():
    rng = Random(1)
    fifo = RamFifo(8, 3)
    simulator = Simulator(fifo)
    simulator.add_clock(1e-8)

    async def bench(ctx):
        ram, there = fifo.ram, set()
        for _ in range(1000):
            ctx.set(fifo.i.valid, rng.random() < 0.6)
            ctx.set(fifo.o.ready, rng.random() < 0.6)
            await ctx.delay(1e-9)
            writes, reads = ctx.get(ram.write_enable), ctx.get(ram.read_enable)
            if reads:
                assert ctx.get(ram.read_address) in there
                assert not writes or ctx.get(ram.write_address) != ctx.get(ram.read_address)
            if writes:
                there.add(ctx.get(ram.write_address))
            await ctx.tick()
        assert there == {0, 1, 2}

    simulator.add_testbench(bench)
    simulator.run()
