"""``cdu verify``: generate, build and simulate blocks, and collect the results."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cdu.delivery import generator
from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown
from cdu_tools.parallel import processes

from cdu_verif import blocks
from cdu_verif.blocks import record
from cdu_verif.cases import served
from cdu_verif.formal import user_properties
from cdu_verif.regression import results, test_names
from cdu_verif.regression.plan import WHOLE, PlannedRun
from cdu_verif.regression.results import FAILED, TestResult
from cdu_verif.simulation import coverage, simulators
from cdu_verif.simulation.bench import BLOCK, CASES, LEVEL, MANIFEST, RECORDS, SEED, STEPS
from cdu_verif.simulation.simulators import BuildError, Simulation

#: Level at which the runs of a block share test parameters: :func:`cdu_verif.regression.shares.shared`.
PAIRS = "pairs"
LEVELS = (PAIRS, "quick", "full")


@dataclass(frozen=True)
class RunSettings:
    """Settings of a regression. UserError for impossible ones, MissingToolError if the simulator is missing."""

    folder: Path  #: folder in which simulations are built and run
    simulator: str = "verilator"  #: or ``icarus``
    seed: int = 1  #: seed of all random stimulus
    level: str = "quick"  #: or ``pairs``: fewer tests of each parameter set; or ``full``: more parameter sets and longer tests
    waves: str | None = None  #: format in which waveforms are recorded, ``fst`` or ``vcd``; with Verilator only
    coverage: bool = False  #: count lines, branches, toggles and expressions; with Verilator only
    tests: tuple[str, ...] = ()  #: names of tests; all if empty
    steps: int | None = None  #: number of training steps
    command: str = "cdu verify"  #: with the options that choose the configuration
    properties: Path | None = None  #: folder with property modules that are bound to AXI ports; with Verilator only

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise UserError(unknown("level", self.level, LEVELS))
        if self.waves is not None and self.waves not in simulators.WAVES:
            raise UserError(unknown("format of waveforms", self.waves, simulators.WAVES))
        if (self.waves or self.coverage or self.properties) and self.simulator != "verilator":
            raise UserError("--waves, --coverage and --properties need --sim verilator")
        if self.properties is not None:
            user_properties.files(self.properties)
        simulators.check(self.simulator)

    @property
    def full(self) -> bool:
        """Return whether the level is ``full``."""
        return self.level == "full"

    @property
    def repeat(self) -> str:
        """Return the command line without blocks, parameters of a run and tests."""
        recorded = f" --waves-format {self.waves}" if self.waves else ""
        properties = f" --properties {shlex.quote(str(self.properties))}" if self.properties else ""
        return (
            f"{self.command} --sim {self.simulator} --seed {self.seed} --level {self.level}"
            f"{recorded}{' --coverage' * self.coverage}{properties} -o {shlex.quote(str(self.folder))}"
        )


@dataclass(frozen=True)
class RunOutcome:
    """Results of one run."""

    tests: list[TestResult]
    coverage: dict[str, dict[str, float]]


def check_tests(runs: Sequence[PlannedRun], tests: Sequence[str]) -> None:
    """Raise UserError for a name that no test of the runs has, before anything is simulated."""
    if not tests:
        return
    known = set().union(*(test_names.names(run.block, run.config, record(run.block).modules) for run in runs))
    for name in tests:
        if name not in known:
            some = f"use one that report.md lists, such as {', '.join(sorted(known)[:3])}"
            raise UserError(unknown("test", name, sorted(known), some))


@contextmanager
def bench_variables(
    manifest: Path, block: str, records: Path, *, seed: int, full: bool = False, steps: int | None = None
) -> Iterator[dict[str, str]]:
    """Provide the environment of benches: the simulated top, the amount of stimulus, the address of cases, the report's file.

    The cases are served within the ``with`` block.
    """
    with served.lend(partial(blocks.cases, block)) as cases:
        yield {
            MANIFEST: str(manifest),
            LEVEL: "full" if full else "quick",
            SEED: str(seed),
            RECORDS: str(records),
            BLOCK: block,
            CASES: cases,
            STEPS: str(steps or (20 if full else 3)),
        }


def regress(
    runs: Sequence[PlannedRun], settings: RunSettings, notify: Callable[[TestResult], None] | None = None
) -> tuple[list[TestResult], dict[str, Any]]:
    """Do all runs, as many at a time as there are processors; return results and coverage by group, in the order of the runs.

    The last runs, which are those of the largest units, begin first, so that none of them runs alone at the end.
    """
    backwards = runs[::-1]
    outcomes: list[RunOutcome] = []
    with processes(max(1, min(len(runs), os.cpu_count() or 1))) as pool:
        for outcome in pool.map(simulate, backwards, [settings] * len(runs)):
            outcomes.insert(0, outcome)
            if notify:
                for test in outcome.tests:
                    notify(test)
    tests = [test for outcome in outcomes for test in outcome.tests]
    return tests, {run.label: outcome.coverage for run, outcome in zip(runs, outcomes, strict=True) if outcome.coverage}


def simulate(run: PlannedRun, settings: RunSettings, mutate: Callable[[str], str] | None = None) -> RunOutcome:
    """Do one run, from generation to results.

    ``mutate`` changes the Verilog text before it is built; in this way benches are tried on faulty units.
    """
    folder = settings.folder / "runs" / run.folder
    folder.mkdir(parents=True, exist_ok=True)
    generated = generator.kept(run.config, None if run.block in WHOLE else run.block)
    paths = {path.suffix: path.resolve() for path in generated.write(folder)}
    if mutate:
        paths[".v"].write_text(mutate(generated.verilog), encoding="utf-8")
    what = " --training" if run.block in WHOLE else f" --block {run.block}"
    repeat = settings.repeat + what + "".join(f" --set {setting}" for setting in run.settings)
    bound: list[Path] = []
    if settings.properties is not None:
        bound = [*user_properties.files(settings.properties), folder / "bind.sv"]
        text = user_properties.bind(settings.properties, generated.top, generated.manifest["ports"], run.config)
        bound[-1].write_text(text, encoding="utf-8")
    simulation = Simulation(
        paths[".v"],
        generated.top,
        folder.resolve(),
        settings.simulator,
        waves=settings.waves,
        coverage=settings.coverage,
        properties=[path.resolve() for path in bound],
    )
    records = folder / "records.jsonl"
    records.unlink(missing_ok=True)
    try:
        simulation.build()
    except BuildError as error:
        return RunOutcome([TestResult(run.label, "build", FAILED, settings.seed, 0.0, str(error), repeat=repeat)], {})
    chosen = test_filter(settings.tests or run.tests)
    with bench_variables(
        paths[".json"], run.block, records.resolve(), seed=settings.seed, full=settings.full, steps=settings.steps
    ) as variables:
        found = simulation.run(record(run.block).modules, variables, chosen)
    log = simulation.folder / "run.log"
    crash = "the simulation ended without results: " + (log.read_text(errors="replace")[-1500:] if log.is_file() else "no log")
    tests = results.read(run.label, found, records, settings.seed, repeat, crash, expects_tests=not settings.tests)
    if violated := _violated(log):
        tests = [replace(test, message=f"{violated}; {test.message}") if test.status == FAILED else test for test in tests]
    counts = simulation.coverage_file
    return RunOutcome(tests, coverage.summary(coverage.read(counts)) if settings.coverage and counts.is_file() else {})


def test_filter(names: Sequence[str]) -> str | None:
    """Return the filter of cocotb for tests of these names; None, which stands for all, without names."""
    return "|".join(rf"\.{re.escape(name)}$" for name in names) or None


def _violated(log: Path) -> str:
    """Return a sentence with the assertions that Verilator has found violated in a run, or nothing."""
    text = log.read_text(errors="replace") if log.is_file() else ""
    names = dict.fromkeys(re.findall(r"Assertion failed in ([\w.]+)", text))
    return f"violated: {', '.join(name.rstrip('.') for name in names)}" if names else ""
