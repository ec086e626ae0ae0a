"""The two-way DCT: cases in Amaranth's simulator; the flag ``empty`` in every cycle, which its bench does not see."""

from random import Random

import pytest
from amaranth.sim import Simulator
from cdu.transform.two_way_dct import TwoWayDct
from cdu_spec.config import CduConfig
from cdu_verif.benches.in_amaranth import assert_passes
from parameter_sets import one_at_once


@pytest.mark.parametrize(("inverse", "stages"), [(0, 0), (1, 0), (1, 1)])
def test_empty_is_high_exactly_when_nothing_is_inside(inverse, stages):
    dut, rng, seen = TwoWayDct(CduConfig(dct_stages=stages)), Random(1), set()

    async def bench(ctx):
        inside, sent = 0, 0
        ctx.set(dut.inverse, inverse)
        for cycle in range(1200):
            offered = sent < 8 * 40 and (sent % 8 != 0 or rng.random() < 0.7)
            ctx.set(dut.i.valid, offered)
            ctx.set(dut.o.ready, rng.random() < (0.05 if cycle < 300 else 0.7))
            empty, enters = ctx.get(dut.empty), ctx.get(dut.i.ready) and offered
            leaves = ctx.get(dut.o.valid) and ctx.get(dut.o.ready)
            assert empty == (inside == 0), f"cycle {cycle}: {inside} rows inside, empty is {empty}"
            seen.add(inside)
            inside += enters - leaves
            sent += enters
            await ctx.tick()
        assert (inside, sent) == (0, 8 * 40)

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    assert max(seen) == 2 + 8 + 3 + 2 * stages


@one_at_once({}, {"sample_bits": 9}, {"dct_stages": 1})
def test_cases(options):
    assert_passes("two_way_dct", CduConfig(**options))
