"""TKEEP of a receiving port: bytes up to the first hole, and their number, for ports of every width."""

from random import Random

import pytest
from amaranth.sim import Simulator
from cdu.bus.axi_stream import AxiReceiver


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 12, 16, 32, 64, 128, 256])
def test_bytes_behind_the_first_hole_are_dropped(size):
    rng = Random(size)
    whole = (1 << size) - 1
    prefixes = [(1 << count) - 1 for count in range(1, size + 1)]
    # One byte or more that is not kept, below kept ones
    holes = [whole & ~(1 << rng.randrange(size)) & ~rng.choice([0, rng.getrandbits(size)]) for _ in range(40)]
    receiver = AxiReceiver(size)
    simulator = Simulator(receiver)
    simulator.add_clock(1e-8)

    async def bench(ctx):
        ctx.set(receiver.tvalid, 1)
        ctx.set(receiver.tlast, 1)
        ctx.set(receiver.o.ready, 1)
        sent = []
        for keep in [*prefixes, *holes]:
            data = rng.getrandbits(8 * size)
            ctx.set(receiver.tkeep, keep)
            ctx.set(receiver.tdata, data)
            await ctx.delay(1e-9)
            assert ctx.get(receiver.tready)
            kept = (~keep & (keep + 1)).bit_length() - 1  # below the lowest zero
            assert ctx.get(receiver.bad_keep) == (keep >> kept != 0)
            sent.append((kept, data & ((1 << 8 * kept) - 1)))
            await ctx.tick()
            if len(sent) > 1:
                word = receiver.o.payload
                assert (ctx.get(word["count"]), ctx.get(word["data"])) == sent[-2]

    simulator.add_testbench(bench)
    simulator.run()
