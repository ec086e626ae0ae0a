"""Bench that plays the cases of a block's record and compares the outputs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

from cdu_spec.port_fields import unpack

from cdu_verif.cases.case import Case
from cdu_verif.cases.served import BorrowedCases
from cdu_verif.simulation.bench import CASES, Bench
from cdu_verif.simulation.patterns import PATTERNS

#: Cycles without a transfer after which the block is regarded as hanging, whatever the stream ends do.
_PATIENCE = 40
#: Cycles at the end of a test in which no other transfer may come.
_QUIET = 60


#: One connection for all tests of a simulation.
_borrowed = cache(BorrowedCases)


class BlockBench(Bench):
    """The block of the simulation and its cases; parameters as in :class:`~cdu_verif.simulation.bench.Bench`."""

    def __init__(self, dut: Any, test: str) -> None:
        super().__init__(dut, test)
        self.block_cases = _borrowed(os.environ[CASES])
        self._turn = 0  #: lane that gets the next block
        self._pulses: Counter[str] = Counter()
        self._event_ports = [name for name in self.block_cases.event_ports if name in self.ports]
        if self._event_ports:
            self.watchers.append(self._count)

    async def reset(self, cycles: int = 2) -> None:
        """Reset the block and clear all streams; lane 0 has the turn."""
        self._turn = 0
        await super().reset(cycles)

    def behave(self, pattern: str) -> None:
        """Let every stream end behave by this pattern from now on, independently of the others."""
        for source in self.sources.values():
            source.pattern = PATTERNS[pattern](self.rng)[0]
        for sink in self.sinks.values():
            sink.pattern = PATTERNS[pattern](self.rng)[1]

    def random_case(self) -> Case:
        """Return a random case of random size."""
        least, most = self.block_cases.blocks
        size = self.rng.randint(least, most * (2 if self.full else 1))
        return self.block_cases.random(self.config, self.ports, self.rng, size)

    def send(self, case: Case) -> Case:
        """Set the ports and queue the inputs of a case; return the case as rotated to the lane that has the turn."""
        case = case.turned(self._turn)
        self._pulses.clear()
        for name, value in case.settings.items():
            self.set(name, value)
        for sink in self.sinks.values():
            sink.received.clear()
            sink.transfers.clear()
        for name, source in self.sources.items():
            source.transfers.clear()
            source.send(case.inputs.get(name, ()))
        return case

    async def play(self, case: Case) -> Case:
        """Play one case and return it as it was sent; AssertionError if any output differs from the golden values."""
        case = self.send(case)
        await self.run(lambda: self._complete(case), _PATIENCE * case.transfers + 1000, case.name)
        await self.idle(self.block_cases.settling)
        self._compare(case)
        for name, value in case.flags.items():
            assert self.get(name) == value, f"{case.name}: {name} is {self.get(name)}, not {value}"
        self._turn += case.turns
        self.cases += 1
        return case

    async def play_all(self, cases: Iterable[Case]) -> None:
        """Play cases one after the other; AssertionError if an output follows the last one."""
        case = None
        for each in cases:
            case = await self.play(each)
        await self.idle(_QUIET)
        if case is not None:
            self._compare(case)

    def _complete(self, case: Case) -> bool:
        return all(len(self.sinks[name].received) >= len(words) for name, words in case.expected.items()) and not any(
            source.queue for source in self.sources.values()
        )

    def _compare(self, case: Case) -> None:
        """Raise AssertionError with the first difference."""
        for name, sink in self.sinks.items():
            wanted = case.expected.get(name, [])
            received = self.block_cases.defined(name, self.ports[f"{name}__payload"], sink.received)
            for index, (got, golden) in enumerate(zip(received, wanted, strict=False)):
                assert got == golden, f"{case.name}: {name} transfer {index} is {got:#x}, the golden model says {golden:#x}"
            assert len(received) == len(wanted), f"{case.name}: {len(received)} transfers of {name}, not {len(wanted)}"
        assert self._pulses == Counter(case.events), f"{case.name}: events {dict(self._pulses)}, not {dict(case.events)}"

    def _count(self) -> None:
        """Count the events of this cycle."""
        for port in self._event_ports:
            if bits := self.get(port):
                value = unpack(self.ports[port], bits)
                named = value if isinstance(value, dict) else {port: value}
                self._pulses.update(name for name, high in named.items() if high)
