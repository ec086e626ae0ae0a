"""A fork: every taker gets every payload once and in order, none more than one ahead of another."""

from random import Random

import pytest
from amaranth.sim import Simulator
from cdu.parts.stream_fork import StreamFork


@pytest.mark.parametrize("ready", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("valid", [1.0, 0.6])
def test_every_taker_gets_every_payload_once(ready, valid):
    rng = Random(f"{ready} {valid}")
    payloads = [rng.getrandbits(8) for _ in range(300)]
    fork = StreamFork(8, 3)
    simulator = Simulator(fork)
    simulator.add_clock(1e-8)

    async def bench(ctx):
        given, taken, cycles = 0, [[], [], []], 0
        while given < len(payloads):
            # Valid may lapse while only some have taken the payload.
            ctx.set(fork.i.valid, rng.random() < valid)
            ctx.set(fork.i.payload, payloads[given])
            for o in fork.o:
                ctx.set(o.ready, rng.random() < ready)
            await ctx.delay(1e-9)
            for o, got in zip(fork.o, taken, strict=True):
                if ctx.get(o.valid) and ctx.get(o.ready):
                    got.append(ctx.get(o.payload))
            given += ctx.get(fork.i.valid) & ctx.get(fork.i.ready)
            cycles += 1
            assert all(given <= len(got) <= given + 1 for got in taken)
            await ctx.tick()
        assert taken == [payloads] * 3
        if ready == valid == 1:
            assert cycles == len(payloads)

    simulator.add_testbench(bench)
    simulator.run()
