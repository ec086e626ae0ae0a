"""Tests of one block: its cases under every stream behaviour, resets, rate and handshake."""

from __future__ import annotations

from cdu_verif.benches.block_bench import BlockBench
from cdu_verif.cases.case import Case
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.patterns import PATTERNS


@bench_test(BlockBench, pattern=list(PATTERNS))
async def random_content(bench: BlockBench, pattern: str) -> None:
    """Random jobs under one behaviour of all stream ends."""
    bench.behave(pattern)
    await bench.play_all(bench.random_case() for _ in range(12 if bench.full else 4))


@bench_test(BlockBench, pattern=["full_rate", "bursts"])
async def corners(bench: BlockBench, pattern: str) -> None:
    """All directed cases."""
    bench.behave(pattern)
    await bench.play_all(bench.block_cases.corners(bench.config, bench.ports, bench.rng))


@bench_test(BlockBench)
async def reset_in_the_middle(bench: BlockBench) -> None:
    """After a reset at any moment of a good or broken case the block works as from the start."""
    broken = bench.block_cases.broken(bench.config, bench.ports, bench.rng)
    for _ in range(24 if bench.full else 8):
        bench.behave("coins")
        bench.send(bench.rng.choice(broken) if broken and bench.rng.random() < 0.3 else bench.random_case())
        await bench.idle(bench.rng.randint(1, 120))
        await bench.reset(bench.rng.randint(1, 3))
        await bench.play(bench.random_case())


@bench_test(BlockBench)
async def rate(bench: BlockBench) -> None:
    """Without stalls streams transfer in every cycle, or all of them within the cycles that the case allows."""
    for case in bench.block_cases.steady(bench.config, bench.ports, bench.rng, bench.block_cases.rate_blocks):
        assert case.steady or case.cycles is not None, f"{case.name} says nothing of its rate"
        await bench.play(case)
        for stream in case.steady:
            transfers = (bench.sources | bench.sinks)[stream].transfers
            cycles = transfers[-1] - transfers[0] + 1
            bench.figures[f"{case.name} {stream}"] = f"{len(transfers)} transfers in {cycles} cycles"
            assert cycles == len(transfers), f"{case.name}: {len(transfers)} transfers of {stream} took {cycles} cycles"
        if case.cycles is not None:
            _within(bench, case, case.cycles)


def _within(bench: BlockBench, case: Case, cycles: int) -> None:
    """AssertionError when it is more cycles from the first transfer of an output to the last of any."""
    transfers = [cycle for sink in bench.sinks.values() for cycle in sink.transfers]
    span = max(transfers) - min(transfers) + 1
    bench.figures[case.name] = f"{len(transfers)} transfers in {span} cycles"
    assert span <= cycles, f"{case.name}: {len(transfers)} transfers took {span} cycles, not {cycles}"


@bench_test(BlockBench)
async def valid_does_not_wait_for_ready(bench: BlockBench) -> None:
    """With sinks that are never ready the block offers its first result and keeps it."""
    for sink in bench.sinks.values():
        sink.pattern = iter(lambda: False, True)
    _, most = bench.block_cases.blocks
    bench.send(bench.block_cases.random(bench.config, bench.ports, bench.rng, most))
    await bench.run(lambda: any(sink.valid_seen for sink in bench.sinks.values()), 200, "nothing is offered")
    for _ in range(200):
        await bench.step()
        assert any(sink.valid_seen for sink in bench.sinks.values()), "valid fell while no sink was ready"
    bench.cases += 1
