"""Tests of one block: its cases under every stream behaviour, resets, rate and handshake."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import cocotb

from cdu_verif.cases import CASES, Case
from cdu_verif.simulation.bench import Bench, simulated_config
from cdu_verif.simulation.patterns import PATTERNS, always
from cdu_verif.simulation.ports import pack_rows, unpack_rows
from cdu_verif.stimulus import ieee1180

#: Cycles that a block may take per transfer before it counts as hanging, whatever the stream ends do.
_PATIENCE = 40
#: Blocks over which the rate is measured.
RATE_BLOCKS = 72

_cases = CASES[os.environ["CDU_VERIFY_BLOCK"]]


async def play(bench: Bench, case: Case) -> None:
    """One case on a unit that is ready for it; AssertionError when anything differs from the golden values."""
    source, sink = bench.sources["i"], bench.sinks["o"]
    for name, value in case.settings.items():
        bench.set(name, value)
    sink.received.clear()
    sink.transfers.clear()
    source.transfers.clear()
    source.send(case.inputs)
    wanted = len(case.expected)
    limit = _PATIENCE * (len(case.inputs) + wanted) + 1000
    await bench.run(lambda: len(sink.received) >= wanted and not source.queue, limit)
    if case.flags:
        # Flags follow the last transfer by some cycles.
        sink.pattern, willing = always(), sink.pattern
        await bench.idle(8)
        sink.pattern = willing
    compare(case, sink.received)
    for name, value in case.flags.items():
        assert bench.get(name) == value, f"{case.name}: {name} is {bench.get(name)}, not {value}"
    bench.cases += 1


def compare(case: Case, received: list[int]) -> None:
    """AssertionError that names the first difference."""
    for index, (got, wanted) in enumerate(zip(received, case.expected, strict=False)):
        assert got == wanted, f"{case.name}: transfer {index} is {got:#x}, the golden model says {wanted:#x}"
    assert len(received) == len(case.expected), f"{case.name}: {len(received)} transfers, not {len(case.expected)}"


async def play_all(bench: Bench, cases: Iterable[Case], pattern: str) -> None:
    """Cases one after the other under one behaviour; at the end nothing more may come."""
    bench.sources["i"].pattern, bench.sinks["o"].pattern = PATTERNS[pattern](bench.rng)
    case = None
    for case in cases:
        await play(bench, case)
    await bench.idle(40)
    if case is not None:
        compare(case, bench.sinks["o"].received)


@cocotb.test
@cocotb.parametrize(pattern=list(PATTERNS))
async def random_content(dut: Any, pattern: str) -> None:
    """Random jobs under one behaviour of both stream ends."""
    bench = await Bench(dut, f"random_content/pattern={pattern}").start()
    count, blocks = (12, 24) if bench.full else (4, 12)
    sizes = [bench.rng.randint(1, blocks) for _ in range(count)]
    cases = [_cases.random(bench.config, bench.ports, bench.rng, size) for size in sizes]
    await play_all(bench, cases, pattern)
    bench.report()


@cocotb.test
@cocotb.parametrize(pattern=["full_rate", "bursts"])
async def corners(dut: Any, pattern: str) -> None:
    """All directed cases."""
    bench = await Bench(dut, f"corners/pattern={pattern}").start()
    await play_all(bench, _cases.corners(bench.config, bench.ports, bench.rng), pattern)
    bench.report()


@cocotb.test
async def reset_in_the_middle(dut: Any) -> None:
    """After a reset at any moment the unit works as from the start."""
    bench = await Bench(dut, "reset_in_the_middle").start()
    for _ in range(24 if bench.full else 8):
        case = _cases.random(bench.config, bench.ports, bench.rng, 3)
        bench.sources["i"].pattern, bench.sinks["o"].pattern = PATTERNS["coins"](bench.rng)
        for name, value in case.settings.items():
            bench.set(name, value)
        bench.sources["i"].send(case.inputs)
        await bench.idle(bench.rng.randint(1, 60))
        await bench.reset(bench.rng.randint(1, 3))
        await play(bench, _cases.random(bench.config, bench.ports, bench.rng, 2))
    bench.report()


@cocotb.test
async def rate(dut: Any) -> None:
    """Without stalls every stream that can transfer in every cycle does so, first transfer to last."""
    bench = await Bench(dut, "rate").start()
    for case in _cases.steady(bench.config, bench.ports, bench.rng, RATE_BLOCKS):
        await play(bench, case)
        for stream in case.steady:
            transfers = (bench.sources["i"] if stream == "i" else bench.sinks["o"]).transfers
            cycles = transfers[-1] - transfers[0] + 1
            bench.figures[f"{case.name} {stream}"] = f"{len(transfers)} transfers in {cycles} cycles"
            assert cycles == len(transfers), f"{case.name}: {len(transfers)} transfers of {stream} took {cycles} cycles"
    bench.report()


@cocotb.test
async def valid_does_not_wait_for_ready(dut: Any) -> None:
    """With a sink that is never ready the block offers its first result and keeps it."""
    bench = await Bench(dut, "valid_does_not_wait_for_ready").start()
    case = _cases.random(bench.config, bench.ports, bench.rng, 16)
    sink = bench.sinks["o"]
    sink.pattern = iter(lambda: False, True)
    for name, value in case.settings.items():
        bench.set(name, value)
    bench.sources["i"].send(case.inputs)
    await bench.run(lambda: sink.valid_seen, 400)
    await bench.idle(200)
    assert sink.valid_seen, "valid fell while the sink was not ready"
    bench.cases += 1
    bench.report()


@cocotb.test(skip=os.environ["CDU_VERIFY_BLOCK"] != "idct" or not ieee1180.applies(simulated_config()))
async def ieee_1180(dut: Any) -> None:
    """IEEE Std 1180-1990 in the hardware built for 9-bit samples: all blocks on full, a part on quick.

    The limits of the mean errors hold for 10 000 blocks; a part is held to the other limits.
    """
    bench = await Bench(dut, "ieee_1180").start()
    if not ieee1180.applies(bench.config):
        return  # cocotb runs a skipped test that is asked for by name
    blocks = ieee1180.BLOCKS_PER_RUN if bench.full else 150
    sink, source = bench.sinks["o"], bench.sources["i"]
    sink.pattern = always()
    for run in ieee1180.runs():
        coefficients, reference = run.stimulus(blocks)
        source.send(pack_rows(bench.ports["i__payload"], {"": coefficients.transpose(0, 2, 1).reshape(-1, 8)}))
        sink.received.clear()
        await bench.run(lambda: len(sink.received) == 8 * blocks, 20 * blocks + 1000)
        rows = unpack_rows(bench.ports["o__payload"], sink.received)[""]
        found = ieee1180.Errors.of(rows.reshape(-1, 8, 8), reference)
        name = f"{-run.low}..{run.high}{', sign reversed' if run.sign < 0 else ''}"
        bench.figures[name] = (
            f"peak {found.peak:g}, mean square {found.mean_square:.4f} (pixel {found.worst_pixel_mean_square:.4f}), "
            f"mean {found.mean:.5f} (pixel {found.worst_pixel_mean:.4f})"
        )
        assert found.peak <= ieee1180.LIMITS.peak, f"{name}: {found}"
        assert found.mean_square <= ieee1180.LIMITS.mean_square, f"{name}: {found}"
        assert not bench.full or found.passed, f"{name}: {found}"
        bench.cases += blocks
    bench.report()
