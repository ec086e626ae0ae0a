"""Jobs of a single block: with one CDU they follow each other without an idle cycle."""

from itertools import pairwise

import pytest
from amaranth.sim import Simulator
from cdu.unit.compressor import Compressor
from cdu.unit.decompressor import Decompressor
from cdu.values.scale_windows import ONE
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.modes import Mode

JOBS = 12


@pytest.mark.parametrize("kind", [Compressor, Decompressor])
def test_a_job_of_one_block_takes_as_long_as_its_block(kind):
    config = CduConfig()
    unit = kind(config)
    step, size = (config.port_beats, BLOCK_SIDE) if kind is Compressor else (config.packed_bytes, BLOCK_VALUES)
    ends = []

    async def send(ctx, stream, payloads):
        ctx.set(stream.valid, 1)
        for payload in payloads:
            ctx.set(stream.payload, payload)
            await ctx.tick().until(stream.ready)
        ctx.set(stream.valid, 0)

    async def jobs(ctx):
        job = {"mode": Mode.SFPR, "beats": BLOCK_SIDE, "row_beats": BLOCK_SIDE, "channel_rows": 1}
        await send(ctx, unit.job, [job] * JOBS)

    async def scales(ctx):
        await send(ctx, unit.scales, [{"value": ONE, "last": 1}] * JOBS)

    async def data(ctx):
        words = [{"count": step, "last": place + step >= size} for place in range(0, size, step)]
        await send(ctx, unit.i, words * JOBS)

    async def ended(ctx):
        ctx.set(unit.o.ready, 1)
        for cycle in range(1000):
            *_, valid, last = await ctx.tick().sample(unit.o.valid, unit.o.payload["last"])
            if valid and last:
                ends.append(cycle)
            if len(ends) == JOBS:
                break

    simulator = Simulator(unit)
    simulator.add_clock(1e-8)
    for bench in (jobs, scales, data, ended):
        simulator.add_testbench(bench)
    simulator.run()
    assert [after - before for before, after in pairwise(ends[3:])] == [BLOCK_SIDE] * (JOBS - 4)
