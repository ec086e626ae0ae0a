"""Tests of both ends of the value side, under every stream behaviour; broken input, resets, rate and handshake."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import cocotb
from cdu.delivery.manifest import unpack

from cdu_verif.cases.value_side import VALUE_SIDE, ValueCase
from cdu_verif.simulation.bench import Bench
from cdu_verif.simulation.patterns import PATTERNS

#: Cycles that a transfer may take before the block counts as hanging, whatever the stream ends do.
_PATIENCE = 40
#: Cycles in which nothing more may come after a case.
_QUIET = 40
#: Beats of a job in which the rate is measured, per beat of a word.
_RATE_WORDS = 24

_cases = VALUE_SIDE[os.environ["CDU_VERIFY_BLOCK"]]


class _End:
    """An end of the value side in a bench: plays cases and compares what comes out."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.pulses: Counter[str] = Counter()
        self.events = [name for name in ("events", "scale_missing", "scale_surplus") if name in bench.ports]
        bench.watchers.append(self._count)

    def behave(self, pattern: str) -> None:
        """How all stream ends behave from now on."""
        for source in self.bench.sources.values():
            source.pattern = PATTERNS[pattern](self.bench.rng)[0]
        for sink in self.bench.sinks.values():
            sink.pattern = PATTERNS[pattern](self.bench.rng)[1]

    def random(self, faults: float = 0) -> ValueCase:
        """Random jobs."""
        bench = self.bench
        return _cases.case(bench.config, bench.ports, bench.rng, "random", _cases.random(bench.rng, bench.config, 60), faults)

    def send(self, case: ValueCase) -> None:
        """Queue the inputs of a case, with nothing received yet."""
        self.pulses.clear()
        for sink in self.bench.sinks.values():
            sink.received.clear()
            sink.transfers.clear()
        for name, source in self.bench.sources.items():
            source.transfers.clear()
            source.send(case.inputs.get(name, ()))

    async def play(self, case: ValueCase) -> None:
        """One case; AssertionError when anything differs from the golden values."""
        bench = self.bench
        self.send(case)
        total = sum(map(len, case.inputs.values())) + sum(map(len, case.expected.values()))
        await bench.run(lambda: self._complete(case), _PATIENCE * total + 1000)
        await bench.idle(_QUIET)
        for name, sink in bench.sinks.items():
            wanted = case.expected.get(name, [])
            for index, (got, golden) in enumerate(zip(sink.received, wanted, strict=False)):
                assert got == golden, f"{case.name}: {name} transfer {index} is {got:#x}, the golden model says {golden:#x}"
            assert len(sink.received) == len(wanted), (
                f"{case.name}: {len(sink.received)} transfers of {name}, not {len(wanted)}"
            )
        assert self.pulses == Counter(case.events), f"{case.name}: events {dict(self.pulses)}, not {dict(case.events)}"
        assert bench.get("idle"), f"{case.name}: not idle at the end"
        bench.cases += 1

    def _complete(self, case: ValueCase) -> bool:
        return all(len(self.bench.sinks[name].received) >= len(words) for name, words in case.expected.items()) and not any(
            source.queue for source in self.bench.sources.values()
        )

    def _count(self) -> None:
        """Counts the events of this cycle."""
        for port in self.events:
            bits = self.bench.get(port)
            if bits:
                value = unpack(self.bench.ports[port], bits)
                named = value if isinstance(value, dict) else {port: value}
                self.pulses.update(name for name, high in named.items() if high)


async def _started(dut: Any, test: str) -> _End:
    return _End(await Bench(dut, test).start())


@cocotb.test
@cocotb.parametrize(pattern=list(PATTERNS))
async def random_content(dut: Any, pattern: str) -> None:
    """Random jobs of all modes under one behaviour of all stream ends."""
    end = await _started(dut, f"random_content/pattern={pattern}")
    end.behave(pattern)
    for _ in range(12 if end.bench.full else 4):
        await end.play(end.random())
    end.bench.report()


@cocotb.test
@cocotb.parametrize(pattern=["full_rate", "bursts"])
async def corners(dut: Any, pattern: str) -> None:
    """All directed cases."""
    end = await _started(dut, f"corners/pattern={pattern}")
    bench = end.bench
    end.behave(pattern)
    for name, jobs in _cases.corners(bench.rng, bench.config).items():
        await end.play(_cases.case(bench.config, bench.ports, bench.rng, name, jobs))
    bench.report()


@cocotb.test
@cocotb.parametrize(pattern=["full_rate", "coins"])
async def broken_jobs(dut: Any, pattern: str) -> None:
    """Values and scales that are too short or too long raise their events, are mended, and leave other jobs unharmed."""
    end = await _started(dut, f"broken_jobs/pattern={pattern}")
    end.behave(pattern)
    for _ in range(16 if end.bench.full else 6):
        await end.play(end.random(faults=0.5))
    end.bench.report()


@cocotb.test
async def reset_in_the_middle(dut: Any) -> None:
    """After a reset at any moment the block works as from the start."""
    end = await _started(dut, "reset_in_the_middle")
    bench = end.bench
    for _ in range(16 if bench.full else 5):
        end.behave("coins")
        end.send(end.random(faults=0.3))
        await bench.idle(bench.rng.randint(1, 120))
        await bench.reset(bench.rng.randint(1, 3))
        await end.play(end.random())
    bench.report()


@cocotb.test
async def rate(dut: Any) -> None:
    """Without stalls a word passes in every cycle, from job to job, when every scale serves a word at least."""
    end = await _started(dut, "rate")
    bench = end.bench
    end.behave("full_rate")
    for name, jobs in _cases.steady(bench.rng, bench.config, _RATE_WORDS * bench.config.port_beats).items():
        await end.play(_cases.case(bench.config, bench.ports, bench.rng, name, jobs))
        for stream in _cases.steady_streams:
            side = bench.sources.get(stream) or bench.sinks.get(stream)
            if side is None:
                continue
            cycles = side.transfers[-1] - side.transfers[0] + 1
            bench.figures[f"{name} {stream}"] = f"{len(side.transfers)} transfers in {cycles} cycles"
            assert cycles == len(side.transfers), f"{name}: {len(side.transfers)} transfers of {stream} took {cycles} cycles"
    bench.report()


@cocotb.test
async def valid_does_not_wait_for_ready(dut: Any) -> None:
    """With sinks that are never ready the block offers its first result and keeps it."""
    end = await _started(dut, "valid_does_not_wait_for_ready")
    bench = end.bench
    for sink in bench.sinks.values():
        sink.pattern = iter(lambda: False, True)
    end.send(end.random())
    await bench.idle(200)
    for _ in range(200):
        await bench.step()
        assert any(sink.valid_seen for sink in bench.sinks.values()), "nothing is offered while no sink is ready"
    bench.cases += 1
    bench.report()
