"""``cdu verify``: generate, build and simulate blocks, and put the results together."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cdu.delivery import generator
from cdu_tools.errors import UserError

from cdu_verif.regression import results, test_names
from cdu_verif.regression.plan import ARRAY, UNIT, Run
from cdu_verif.regression.results import FAILED, TestResult
from cdu_verif.simulation import coverage
from cdu_verif.simulation.simulators import BuildError, Simulation

#: Test modules of what is no simple block.
_MODULES = {
    **{
        name: ["array_parts"]
        for name in ("distributor", "gatherer", "collector", "splitter", "range_store", "range_finder", "affine_quantizer")
    },
    **{name: ["value_side"] for name in ("value_front", "value_back")},
    "compressor": ["units"],
    "decompressor": ["units"],
    "control": ["control"],
    ARRAY: ["array", "array_errors", "array_promises", "array_rate"],
    UNIT: ["training", "streams"],
}


@dataclass(frozen=True)
class Settings:
    """How a regression is run."""

    folder: Path
    simulator: str = "verilator"
    seed: int = 1
    full: bool = False
    waves: bool = False
    coverage: bool = False
    tests: tuple[str, ...] = ()  #: names of tests; all when empty
    repeat: str = "cdu verify"  #: the command line without blocks, parameters and tests
    steps: int | None = None  #: of training


@dataclass(frozen=True)
class Outcome:
    """What one run gave."""

    tests: list[TestResult]
    coverage: dict[str, dict[str, float]]


def check_tests(runs: Sequence[Run], tests: Sequence[str]) -> None:
    """UserError for a name that no test of some runs has, before anything is simulated."""
    if not tests:
        return
    known = set().union(*(test_names.names(run.block, run.config, _modules(run.block)) for run in runs))
    for name in tests:
        if name not in known:
            near = get_close_matches(name, known, n=3) or sorted(known)[:3]
            raise UserError(f"no test is called {name or repr(name)}: use one that report.md lists, such as {', '.join(near)}")


def _modules(block: str) -> list[str]:
    """The modules with the tests of a block."""
    return [f"cdu_verif.benches.{name}" for name in _MODULES.get(block, ["blocks"])]


def regress(
    runs: Sequence[Run], settings: Settings, notify: Callable[[TestResult], None] | None = None
) -> tuple[list[TestResult], dict[str, Any]]:
    """All runs, as many at a time as there are processors; their results and coverage by group."""
    tests: list[TestResult] = []
    covered: dict[str, Any] = {}
    workers = max(1, min(len(runs), os.cpu_count() or 1))
    with ProcessPoolExecutor(workers) as pool:
        for run, outcome in zip(runs, pool.map(simulate, runs, [settings] * len(runs)), strict=True):
            tests += outcome.tests
            if outcome.coverage:
                covered[run.label] = outcome.coverage
            if notify:
                for test in outcome.tests:
                    notify(test)
    return tests, covered


def simulate(run: Run, settings: Settings, mutate: Callable[[str], str] | None = None) -> Outcome:
    """One block with one set of parameters, from generation to results.

    ``mutate`` changes the Verilog text before it is built; benches are tried on faulty units this way.
    """
    folder = settings.folder / "runs" / run.folder
    folder.mkdir(parents=True, exist_ok=True)
    generated = generator.generate(run.config, None if run.block == UNIT else run.block)
    paths = {path.suffix: path.resolve() for path in generated.write(folder)}
    if mutate:
        paths[".v"].write_text(mutate(generated.verilog), encoding="utf-8")
    what = " --training" if run.block == UNIT else f" --block {run.block}"
    repeat = settings.repeat + what + "".join(f" --set {setting}" for setting in run.settings)
    simulation = Simulation(
        paths[".v"], generated.name, folder.resolve(), settings.simulator, waves=settings.waves, coverage=settings.coverage
    )
    records = folder / "records.jsonl"
    records.unlink(missing_ok=True)
    try:
        simulation.build()
    except BuildError as error:
        return Outcome([TestResult(run.label, "build", FAILED, settings.seed, 0.0, str(error), repeat=repeat)], {})
    variables = {
        "CDU_VERIFY_MANIFEST": str(paths[".json"]),
        "CDU_VERIFY_LEVEL": "full" if settings.full else "quick",
        "CDU_VERIFY_SEED": str(settings.seed),
        "CDU_VERIFY_RECORDS": str(records.resolve()),
        "CDU_VERIFY_BLOCK": run.block,
        "CDU_VERIFY_STEPS": str(settings.steps or (20 if settings.full else 3)),
    }
    modules = _modules(run.block)
    chosen = "|".join(rf"\.{re.escape(test)}$" for test in settings.tests) or None
    found = simulation.run(modules, variables, chosen)
    log = simulation.folder / "run.log"
    crash = "the simulation ended without results: " + (log.read_text(errors="replace")[-1500:] if log.is_file() else "no log")
    tests = results.read(run.label, found, records, settings.seed, repeat, crash, expects_tests=not settings.tests)
    counts = simulation.coverage_file
    return Outcome(tests, coverage.summary(coverage.points(counts)) if settings.coverage and counts.is_file() else {})
