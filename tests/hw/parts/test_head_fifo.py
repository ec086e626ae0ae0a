"""A queue with its head in a register: order, room, one transfer per cycle."""

from collections import deque
from random import Random

import pytest
from amaranth.sim import Simulator
from cdu.parts.head_fifo import HeadFifo


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize(("valid", "ready"), [(1.0, 1.0), (1.0, 0.3), (0.5, 0.5), (0.3, 1.0)])
def test_it_keeps_as_many_payloads_as_it_is_deep(depth, valid, ready):
    rng = Random(f"{depth} {valid} {ready}")
    fifo = HeadFifo(8, depth)
    simulator = Simulator(fifo)
    simulator.add_clock(1e-8)

    async def bench(ctx):
        kept, most = deque(), 0
        for cycle in range(500):
            payload = rng.getrandbits(8)
            ctx.set(fifo.i.valid, rng.random() < valid)
            ctx.set(fifo.i.payload, payload)
            ctx.set(fifo.o.ready, rng.random() < ready)
            await ctx.delay(1e-9)
            assert ctx.get(fifo.o.valid) == bool(kept)
            takes, gives = ctx.get(fifo.i.valid & fifo.i.ready), ctx.get(fifo.o.valid & fifo.o.ready)
            if valid == ready == 1:
                assert takes
                assert gives == (cycle > 0)
            if gives:
                assert ctx.get(fifo.o.payload) == kept.popleft()
            if takes:
                kept.append(payload)
            most = max(most, len(kept))
            await ctx.tick()
        assert most == (1 if ready == 1 else depth)

    simulator.add_testbench(bench)
    simulator.run()
