"""Test of blocks that mend jobs in which something is wrong."""

from __future__ import annotations

from cdu_verif.benches.block_bench import BlockBench
from cdu_verif.simulation.bench_test import bench_test


@bench_test(BlockBench, pattern=["full_rate", "coins"])
async def broken_jobs(bench: BlockBench, pattern: str) -> None:
    """Input that is too short or too long raises its events, is mended, and leaves other jobs unharmed."""
    bench.behave(pattern)
    for _ in range(3 if bench.full else 1):
        cases = bench.block_cases.broken(bench.config, bench.ports, bench.rng)
        assert cases, "the block has no broken cases"
        await bench.play_all(cases)
