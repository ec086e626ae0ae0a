"""Bench of a generated unit in a simulation: clock, reset, and both ends of its streams.

In every cycle all inputs are driven right after the rising edge, and all signals are sampled when they have settled; a
transfer seen then takes place at the next edge. One coroutine does this for all streams, so that a cycle costs two triggers
however many streams there are.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from cdu_spec.config import CduConfig
from cdu_spec.port_fields import pack
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge

from cdu_verif.simulation.handshake import HandshakeMonitor
from cdu_verif.simulation.patterns import Pattern, always
from cdu_verif.simulation.reset import Reset

#: Environment variables by which the runner configures the benches.
MANIFEST, LEVEL, SEED, RECORDS = "CDU_VERIFY_MANIFEST", "CDU_VERIFY_LEVEL", "CDU_VERIFY_SEED", "CDU_VERIFY_RECORDS"
BLOCK = "CDU_VERIFY_BLOCK"
#: Environment variable with the address of the cases of the block: :func:`cdu_verif.cases.served.lend`.
CASES = "CDU_VERIFY_CASES"
#: Environment variable with the number of training steps.
STEPS = "CDU_VERIFY_STEPS"
#: Period of the clock in ns.
CLOCK_NS = 2


class Source:
    """Drive a stream: packed payloads from a queue, offered in the cycles of the pattern and then held."""

    def __init__(self, dut: Any, name: str, width: int, rng: Random) -> None:
        self.name, self._width, self._rng = name, width, rng
        self._payload, self._valid, self._ready = (getattr(dut, f"{name}__{role}") for role in ("payload", "valid", "ready"))
        self.queue: deque[int] = deque()  #: packed payloads not yet transferred
        self.pattern: Pattern = always()
        self.transfers: list[int] = []  #: cycle of every transfer
        self._offered = self._high = False
        self._valid.value = 0
        self._disturb()

    def send(self, words: Iterable[int]) -> None:
        """Append payloads to the queue."""
        self.queue.extend(words)

    def drive(self) -> None:
        """Drive this cycle: the next payload once the one before is transferred, or garbage without valid."""
        if self._offered:
            return
        if len(self.queue) and next(self.pattern):
            self._offered = True
            self._payload.value = self.queue[0]
            if not self._high:
                self._valid.value = 1
                self._high = True
        elif self._high:
            self._valid.value = 0
            self._high = False
            self._disturb()

    def sample(self, cycle: int) -> None:
        """Note whether this cycle transfers."""
        if self._offered and int(self._ready.value):
            self.queue.popleft()
            self.transfers.append(cycle)
            self._offered = False

    def drop(self) -> None:
        """Clear the queue and stop offering (reset)."""
        self.queue.clear()
        self._offered = self._high = False
        self._valid.value = 0

    def _disturb(self) -> None:
        """Put garbage on the payload, which must be ignored."""
        self._payload.value = self._rng.getrandbits(self._width)


class Sink:
    """Receive a stream in the cycles of the pattern, and check the handshake in every cycle."""

    def __init__(self, dut: Any, name: str) -> None:
        self.name = name
        self._payload, self._valid, self._ready = (getattr(dut, f"{name}__{role}") for role in ("payload", "valid", "ready"))
        self.pattern: Pattern = always()
        self.received: list[int] = []
        self.transfers: list[int] = []  #: cycle of every transfer
        self.monitor = HandshakeMonitor(name)
        self.valid_seen = False  #: valid was high in the last cycle
        self._willing = False
        self._ready.value = 0

    def drive(self) -> None:
        """Drive ready in this cycle."""
        willing = next(self.pattern)
        if willing != self._willing:
            self._willing = willing
            self._ready.value = int(willing)

    def sample(self, cycle: int) -> None:
        """Check the handshake and take a transferred payload."""
        self.valid_seen = valid = bool(int(self._valid.value))
        payload = int(self._payload.value) if valid else 0
        self.monitor.check(valid, self._willing, payload)
        if valid and self._willing:
            self.received.append(payload)
            self.transfers.append(cycle)


def manifest() -> dict[str, Any]:
    """Return the manifest of the simulated top."""
    content: dict[str, Any] = json.loads(Path(os.environ[MANIFEST]).read_text(encoding="utf-8"))
    return content


def simulated_config() -> CduConfig:
    """Return the configuration that the simulated top was generated for."""
    return CduConfig.from_dict(manifest()["config"])


class Bench:
    """One simulated top with its manifest.

    Parameters
    ----------
    dut
        cocotb's handle of the top.
    test
        Name of the running test; its random numbers depend on this name and on the seed only.
    """

    def __init__(self, dut: Any, test: str) -> None:
        self.dut, self.test = dut, test
        self.manifest = manifest()
        self.ports: dict[str, dict[str, Any]] = {port["name"]: port for port in self.manifest["ports"]}
        self.config = simulated_config()
        self.full = os.environ.get(LEVEL, "quick") == "full"
        self.seed = int(os.environ.get(SEED, "1"))
        self.rng = Random(f"{self.seed} {self.manifest['name']} {test}")
        self.cycle, self.cases = 0, 0
        self.figures: dict[str, Any] = {}  #: entries of the report
        self._covered: dict[str, set[str]] = {}
        self._measurements: list[dict[str, Any]] = []
        streams = {port["stream"]["name"]: port["stream"]["direction"] for port in self.ports.values() if "stream" in port}
        self.sources = {
            name: Source(dut, name, self.ports[f"{name}__payload"]["width"], self.rng)
            for name, direction in streams.items()
            if direction == "input"
        }
        self.sinks = {name: Sink(dut, name) for name, direction in streams.items() if direction == "output"}
        for name, port in self.ports.items():
            if port["direction"] == "input" and "stream" not in port and name != "clk":
                getattr(dut, name).value = 0
        self._ends: tuple[Source | Sink, ...] = (*self.sources.values(), *self.sinks.values())
        self.watchers: list[Callable[[], None]] = []  #: called in every cycle when all signals have settled
        self._edge, self._settled = RisingEdge(dut.clk), ReadOnly()
        self._reset = Reset(dut)

    async def start(self) -> Bench:
        """Start the clock and reset the unit."""
        Clock(self.dut.clk, CLOCK_NS, unit="ns").start()
        await self.reset()
        return self

    async def reset(self, cycles: int = 2) -> None:
        """Reset the unit and clear all streams."""
        self._reset.drive(True)
        for source in self.sources.values():
            source.drop()
        for _ in range(cycles):
            await self._edge
        self._reset.drive(False)
        for sink in self.sinks.values():
            sink.monitor.forget()
            sink.received.clear()
            sink.transfers.clear()
        for source in self.sources.values():
            source.transfers.clear()
        await self._edge

    def set(self, name: str, value: Any) -> None:
        """Drive an input that is not part of a stream, in the form of :func:`cdu_spec.port_fields.pack`."""
        getattr(self.dut, name).value = pack(self.ports[name], value)

    def get(self, name: str) -> int:
        """Return the bits of an output that is not part of a stream."""
        return int(getattr(self.dut, name).value)

    async def step(self) -> None:
        """Run one cycle."""
        for end in self._ends:
            end.drive()
        await self._settled
        cycle = self.cycle
        for end in self._ends:
            end.sample(cycle)
        for watch in self.watchers:
            watch()
        await self._edge
        self.cycle += 1

    async def run(self, done: Callable[[], bool], limit: int, what: str) -> None:
        """Run cycles until ``done``; AssertionError, naming ``what``, if that takes more than ``limit`` cycles."""
        begin = self.cycle
        while not done():
            await self.step()
            if self.cycle - begin > limit:
                waiting = {name: len(source.queue) for name, source in self.sources.items()}
                came = {name: len(sink.received) for name, sink in self.sinks.items()}
                raise AssertionError(f"{what}: no end after {limit} cycles: not sent {waiting}, received {came}")

    async def idle(self, cycles: int) -> None:
        """Run ``cycles`` more cycles."""
        for _ in range(cycles):
            await self.step()

    def cover(self, point: str, hit: str) -> None:
        """Note that a bin of :mod:`cdu_verif.simulation.cover_points` was hit, with the right result."""
        self._covered.setdefault(point, set()).add(hit)

    def measure(self, **row: Any) -> None:
        """Note a measurement as a row of a table in report.json."""
        self._measurements.append(row)

    def report(self) -> None:
        """Write the results of this test for the runner."""
        covered = {point: sorted(hits) for point, hits in self._covered.items()}
        record: Mapping[str, Any] = {
            "test": self.test,
            "cases": self.cases,
            "cycles": self.cycle,
            "figures": self.figures,
            "covered": covered,
            "measurements": self._measurements,
        }
        path = os.environ.get(RECORDS)
        if path:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        print(f"{self.test}: {self.cases} cases, {self.cycle} cycles, seed {self.seed}", file=sys.stderr)
