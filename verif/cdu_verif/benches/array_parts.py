"""Tests of the parts of an array that have a stream per lane, under every stream behaviour; resets, rate and handshake."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

import cocotb
from cdu.delivery.manifest import unpack

from cdu_verif.cases.array_parts import PartCase
from cdu_verif.cases.parts import PARTS
from cdu_verif.simulation.bench import Bench
from cdu_verif.simulation.patterns import PATTERNS

#: Cycles that a transfer may take before the part counts as hanging, whatever the stream ends do.
_PATIENCE = 40
#: Blocks over which the rate is measured.
_RATE_BLOCKS = 240

_block = os.environ["CDU_VERIFY_BLOCK"]
_cases = PARTS[_block]


class _Part:
    """A part in a bench: plays cases and compares what comes out."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.config = _cases.built(bench.config)
        self.first = 0  #: lane whose turn it is
        self.pulses: Counter[str] = Counter()
        if "events" in bench.ports:
            bench.watchers.append(self._count)

    def behave(self, pattern: str) -> None:
        """How all ends behave from now on."""
        for source in self.bench.sources.values():
            source.pattern = PATTERNS[pattern](self.bench.rng)[0]
        for sink in self.bench.sinks.values():
            sink.pattern = PATTERNS[pattern](self.bench.rng)[1]

    def random(self, blocks: int) -> PartCase:
        """Random jobs that begin with the lane whose turn it is."""
        return self.made("random", _cases.random(self.config, self.bench.rng, blocks))

    def made(self, name: str, jobs: Any) -> PartCase:
        """A case that begins with the lane whose turn it is."""
        return _cases.case(self.config, self.bench.ports, self.bench.rng, name, jobs, self.first)

    def send(self, case: PartCase) -> None:
        """Queue the inputs of a case, with nothing received yet."""
        for sink in self.bench.sinks.values():
            sink.received.clear()
            sink.transfers.clear()
        for name, source in self.bench.sources.items():
            source.transfers.clear()
            source.send(case.inputs.get(name, ()))

    async def play(self, case: PartCase) -> None:
        """One case; AssertionError when anything differs from the golden values."""
        bench = self.bench
        self.pulses.clear()
        self.send(case)
        total = sum(map(len, case.expected.values())) + sum(map(len, case.inputs.values()))
        begin, quiet = bench.cycle, 0
        while not self._complete(case) or quiet < 4:
            quiet = quiet + 1 if self._complete(case) else 0
            await bench.step()
            assert bench.cycle - begin < _PATIENCE * total + 1000, f"{case.name}: no end, {self._progress(case)}"
        self.compare(case)
        assert self.pulses == Counter(case.events), f"{case.name}: events {dict(self.pulses)}, not {dict(case.events)}"
        self.first = (self.first + case.blocks) % self.config.cdus
        bench.cases += 1

    def _count(self) -> None:
        """Counts the events of this cycle."""
        values = unpack(self.bench.ports["events"], self.bench.get("events"))
        self.pulses.update(name for name, value in values.items() if value)

    def compare(self, case: PartCase) -> None:
        """AssertionError that names the first difference."""
        for name, sink in self.bench.sinks.items():
            wanted = case.expected.get(name, [])
            for index, (got, golden) in enumerate(
                zip(_cases.defined(name, self.bench.ports[f"{name}__payload"], sink.received), wanted, strict=False)
            ):
                assert got == golden, f"{case.name}: {name} transfer {index} is {got:#x}, the golden model says {golden:#x}"
            assert len(sink.received) == len(wanted), (
                f"{case.name}: {len(sink.received)} transfers of {name}, not {len(wanted)}"
            )

    def span(self) -> int:
        """Cycles from the first transfer of an output to the last of any."""
        transfers = [cycle for sink in self.bench.sinks.values() for cycle in sink.transfers]
        return max(transfers) - min(transfers) + 1

    def _complete(self, case: PartCase) -> bool:
        return all(len(self.bench.sinks[name].received) >= len(words) for name, words in case.expected.items()) and not any(
            source.queue for source in self.bench.sources.values()
        )

    def _progress(self, case: PartCase) -> str:
        came = {name: f"{len(self.bench.sinks[name].received)} of {len(words)}" for name, words in case.expected.items()}
        left = {name: len(source.queue) for name, source in self.bench.sources.items() if source.queue}
        return f"received {came}, not sent {left}"


async def _started(dut: Any, test: str) -> _Part:
    return _Part(await Bench(dut, test).start())


async def _play_all(part: _Part, cases: Iterable[PartCase]) -> None:
    """Cases one after the other; at the end nothing more may come."""
    case = None
    for case in cases:
        await part.play(case)
    for _ in range(60):
        await part.bench.step()
    if case is not None:
        part.compare(case)


@cocotb.test
@cocotb.parametrize(pattern=list(PATTERNS))
async def random_content(dut: Any, pattern: str) -> None:
    """Random jobs under one behaviour of all stream ends."""
    part = await _started(dut, f"random_content/pattern={pattern}")
    part.behave(pattern)
    count, blocks = (12, 60) if part.bench.full else (4, 30)
    await _play_all(part, (part.random(part.bench.rng.randint(1, blocks)) for _ in range(count)))
    part.bench.report()


@cocotb.test
@cocotb.parametrize(pattern=["full_rate", "bursts"])
async def corners(dut: Any, pattern: str) -> None:
    """All directed cases."""
    part = await _started(dut, f"corners/pattern={pattern}")
    part.behave(pattern)
    await _play_all(part, (part.made(name, jobs) for name, jobs in _cases.corners(part.config, part.bench.rng).items()))
    part.bench.report()


@cocotb.test(skip=_block != "splitter")
@cocotb.parametrize(pattern=["full_rate", "coins"])
async def broken_jobs(dut: Any, pattern: str) -> None:
    """Payloads that are too short or too long raise their event once, give all blocks, and leave the next job unharmed."""
    part = await _started(dut, f"broken_jobs/pattern={pattern}")
    part.behave(pattern)
    bench = part.bench
    for _ in range(3 if bench.full else 1):
        await _play_all(part, _cases.broken(part.config, bench.ports, bench.rng, part.first))
    bench.report()


@cocotb.test
async def reset_in_the_middle(dut: Any) -> None:
    """After a reset at any moment the part works as from the start."""
    part = await _started(dut, "reset_in_the_middle")
    bench = part.bench
    for _ in range(24 if bench.full else 8):
        part.behave("coins")
        part.send(part.random(20))
        await bench.idle(bench.rng.randint(1, 80))
        await bench.reset(bench.rng.randint(1, 3))
        part.first = 0
        await part.play(part.random(8))
    bench.report()


@cocotb.test
async def rate(dut: Any) -> None:
    """Without stalls the lanes together pass what their number promises, across jobs."""
    part = await _started(dut, "rate")
    part.behave("full_rate")
    for name, jobs in _cases.steady(part.config, part.bench.rng, _RATE_BLOCKS).items():
        case = part.made(name, jobs)
        await part.play(case)
        part.bench.figures[name] = f"{case.blocks} blocks in {part.span()} cycles"
        assert part.span() <= case.cycles, f"{name}: {case.blocks} blocks took {part.span()} cycles, not {case.cycles}"
    part.bench.report()


@cocotb.test
async def valid_does_not_wait_for_ready(dut: Any) -> None:
    """With sinks that are never ready the part offers its first result and keeps it."""
    part = await _started(dut, "valid_does_not_wait_for_ready")
    bench = part.bench
    for sink in bench.sinks.values():
        sink.pattern = iter(lambda: False, True)
    part.send(part.random(20))
    await bench.idle(200)
    for _ in range(200):
        await bench.step()
        assert any(sink.valid_seen for sink in bench.sinks.values()), "nothing is offered while no sink is ready"
    bench.cases += 1
    bench.report()
