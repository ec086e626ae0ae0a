"""Scales in memory to the words of a scale port."""

from random import Random

import pytest
from amaranth.sim import Simulator
from cdu.dma.scale_words import ScaleWords
from cdu_spec.config import CduConfig


@pytest.mark.parametrize("size", [8, 16, 64])
@pytest.mark.parametrize(("modes", "wide", "port"), [(("sfpr",), 0, 4), (("sfpr", "blpa"), 0, 8), (("sfpr", "blpa"), 1, 8)])
def test_each_scale_is_a_transfer(size, modes, wide, port):
    words, rng, scale = ScaleWords(CduConfig(modes=modes), size), Random(size), 8 if wide else 4
    packets = [rng.randbytes(count * scale) for count in (1, 2, 3, 8, 16, 17, 33)]
    found = []

    async def feed(ctx):
        ctx.set(words.wide, wide)
        for packet in packets:
            for begin in range(0, len(packet), size):
                piece = packet[begin : begin + size]
                payload = {"data": int.from_bytes(piece, "little"), "count": len(piece), "last": begin + size >= len(packet)}
                ctx.set(words.i.payload, payload)
                ctx.set(words.i.valid, 1)
                await ctx.tick().until(words.i.ready)
                ctx.set(words.i.valid, 0)

    async def take(ctx):
        for packet in packets:
            for begin in range(0, len(packet), scale):
                ctx.set(words.o.ready, 0)
                await ctx.tick().repeat(1 + rng.randrange(3))
                ctx.set(words.o.ready, 1)
                (word,) = await ctx.tick().sample(words.o.payload).until(words.o.valid)
                assert word.count == port
                assert word.last == (begin + scale == len(packet))
                found.append(word.data.to_bytes(port, "little")[:scale])

    simulator = Simulator(words)
    simulator.add_clock(1e-8)
    simulator.add_testbench(feed)
    simulator.add_testbench(take)
    simulator.run()
    assert b"".join(found) == b"".join(packets)
