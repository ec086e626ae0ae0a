"""Campaign that finds how many of a block's mutants its benches and proofs detect."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cdu.delivery import generator
from cdu.delivery.blocks import HALVES, UNITS
from cdu_spec.config import CduConfig
from cdu_tools.errors import UserError
from cdu_tools.parallel import processes

from cdu_verif.blocks import record
from cdu_verif.formal import solver
from cdu_verif.formal.proof import prove
from cdu_verif.formal.properties import block_device
from cdu_verif.formal.solver import COVER, Sby
from cdu_verif.mutation import mutants
from cdu_verif.mutation.mutants import Mutant
from cdu_verif.proofs import catalog
from cdu_verif.regression import regression, results
from cdu_verif.simulation.simulators import Simulation

#: Outcomes of a mutant.
KILLED, SURVIVED, EQUIVALENT = "killed", "survived", "equivalent"
#: Blocks that are too large for the search for differences.
_TOO_LARGE = (*UNITS, *HALVES)


@dataclass(frozen=True)
class Fate:
    """A mutant and its outcome."""

    mutant: Mutant
    outcome: str  #: KILLED, SURVIVED or EQUIVALENT
    test: str = ""  #: the test that found it, or ``proof NAME``


@dataclass(frozen=True)
class Score:
    """Outcomes of the mutants of one block."""

    block: str
    fates: tuple[Fate, ...]

    def count(self, outcome: str) -> int:
        """Return the number of mutants with an outcome."""
        return sum(fate.outcome == outcome for fate in self.fates)

    @property
    def percent(self) -> float:
        """Return the percentage of killed mutants among those that are not equivalent; 100 if there are none."""
        real = len(self.fates) - self.count(EQUIVALENT)
        return 100 * self.count(KILLED) / real if real else 100.0


def score(
    block: str, config: CduConfig, folder: Path, count: int, seed: int, notify: Callable[[Fate], None] | None = None
) -> Score:
    """Put ``count`` faults into a block's Verilog, one at a time, and run the block's benches of the level ``quick``.

    All mutants are in one build; the first test that fails ends the run of a mutant. If the solvers are installed, mutants
    that pass all tests are compared with the design, under the promises about the block's inputs, and those that differ are
    given to the block's proofs: the first refuted proof kills them. A unit or half of one is too large for this comparison.
    Raises UserError if a test fails without any fault.
    """
    folder.mkdir(parents=True, exist_ok=True)
    generated = generator.kept(config, block)
    paths = {path.suffix: path.resolve() for path in generated.write(folder)}
    netlists = folder / "netlists"
    netlists.mkdir(exist_ok=True)
    chosen = mutants.choose(paths[".v"], generated.top, netlists, count, seed)
    file = mutants.selectable(chosen, generated.manifest["ports"], generated.top, netlists)
    simulation = Simulation(file, generated.top, folder.resolve(), "verilator")
    simulation.build()
    run = partial(_failing_test, simulation, block, paths[".json"], folder.resolve(), seed)
    if failing := run(0):
        raise UserError(f"{block}: {failing} fails without any fault: mend the block before its benches are tried")
    found: list[Fate] = []
    with processes(len(os.sched_getaffinity(0))) as pool:
        failures = pool.map(run, [mutant.number for mutant in chosen])
        judge = partial(_fate, block=block, config=config, folder=netlists)
        for fate in pool.map(judge, chosen, failures):
            found.append(fate)
            if notify:
                notify(fate)
    return Score(block, tuple(found))


def _failing_test(
    simulation: Simulation, block: str, manifest: Path, folder: Path, seed: int, number: int, tests: Sequence[str] = ()
) -> str:
    """Return the first test, among ``tests`` or all, that a mutant fails; empty if it passes all."""
    place = folder / "runs" / str(number)
    records = place / "records.jsonl"
    records.unlink(missing_ok=True)
    with regression.bench_variables(manifest, block, records, seed=seed) as told:
        variables = {**told, "COCOTB_MAX_FAILURES": "1"}
        chosen, arguments = regression.test_filter(tests), [f"+{mutants.ARGUMENT}={number}"]
        found = simulation.run(record(block).modules, variables, chosen, folder=place, arguments=arguments)
    read = results.read(block, found, records, seed, "", "the simulation ended without results")
    return next((test.name for test in read if test.status == results.FAILED), "")


def _fate(mutant: Mutant, failing: str, *, block: str, config: CduConfig, folder: Path) -> Fate:
    if failing:
        return Fate(mutant, KILLED, failing)
    if not solver.installed() or block in _TOO_LARGE:
        return Fate(mutant, SURVIVED)
    device = block_device(block, config)
    if mutants.equivalent(mutant, device, record(block).promised(device, config), folder):
        return Fate(mutant, EQUIVALENT)
    refuted = refuted_proof(mutant, block, config, folder)
    return Fate(mutant, KILLED, f"proof {refuted}") if refuted else Fate(mutant, SURVIVED)


def refuted_proof(mutant: Mutant, block: str, config: CduConfig, folder: Path) -> str:
    """Return the first proof about the block itself that a mutant refutes; empty if there is none."""
    top = block_device(block, config).name
    for what in catalog.properties(config, [block]):
        if not isinstance(what.method, Sby) or what.method.kind is COVER or what.device().name != top:
            continue
        place = folder / f"proofs_{mutant.number}" / what.name
        if prove(what, place, lambda _: mutants.verilog(mutant, folder)).trace:
            return what.name
    return ""
