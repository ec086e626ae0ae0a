"""``cdu verify``: regression of the generated Verilog against the golden model."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED
from cdu_spec.config import ConfigError
from cdu_tools.errors import UserError

from cdu_cli.options import (
    ConfigOption,
    JsonOption,
    OutputOption,
    SetOption,
    configuration,
    distinct,
    output_directory,
    write_json,
)

#: Training steps of one simulation.
MAX_STEPS = 1_000_000
_EXAMPLE = "Example: cdu verify --block dct --block idct --level quick -o build/verify"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=_EXAMPLE)(verify)


def verify(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: Annotated[list[str] | None, typer.Option(help="One block; may be given several times. Default: all.")] = None,
    test: Annotated[list[str] | None, typer.Option(help="One test by the name in the report. Default: all.")] = None,
    sim: Annotated[str, typer.Option(help="Simulator: verilator or icarus.")] = "verilator",
    seed: Annotated[int, typer.Option(help="Seed of all random stimulus.", min=0, max=MAX_SEED)] = 1,
    level: Annotated[str, typer.Option(help="quick, or full (more parameter sets and longer tests).")] = "quick",
    waves: Annotated[bool, typer.Option(help="Record FST waveforms (Verilator).")] = False,
    coverage: Annotated[bool, typer.Option(help="Count lines, toggles and expressions of the Verilog (Verilator).")] = False,
    training: Annotated[bool, typer.Option(help="Train a network through the simulated unit instead, with 4 CDUs.")] = False,
    steps: Annotated[
        int | None, typer.Option(help="Training steps (default: 3 on quick, 20 on full).", min=1, max=MAX_STEPS)
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Simulate generated units with cocotb; every expected value comes from the golden model.

    Writes results.xml (JUnit), report.md and report.json. Exit code 1 when a test fails.
    Every parameter that --set does not fix is varied where a block depends on it.
    """
    if level not in ("quick", "full"):
        raise UserError(f"unknown level {level!r}: use quick or full")
    if (waves or coverage) and sim != "verilator":
        raise UserError("--waves and --coverage need --sim verilator")
    if steps is not None and not training:
        raise UserError("--steps belongs to --training")
    if training and (block or test):
        raise UserError("--training runs the whole unit: it takes neither --block nor --test")
    chosen = configuration(config, settings)
    blocks, names = distinct("--block", block), distinct("--test", test)
    try:
        from cdu_verif.regression import plan, regression, results
        from cdu_verif.simulation import simulators
    except ModuleNotFoundError as error:
        from cdu_tools.errors import MissingToolError

        raise MissingToolError(f"{error.name} is not installed: add it with `pip install 'cdu[verify]'`") from None
    simulators.check(sim)
    given = [("--config", config), *(("--set", item) for item in settings or [])]
    common = " ".join(["cdu verify", *(f"{name} {shlex.quote(value)}" for name, value in given)])
    common += f" --sim {sim} --seed {seed} --level {level}{' --waves' * waves} -o {shlex.quote(str(output))}"
    pinned = [item.partition("=")[0].strip() for item in settings or []]
    if training:
        planned = [plan.training_run(chosen, pinned)]
    else:
        planned = plan.runs(chosen, blocks, level == "full", pinned)
        if not planned:
            raise ConfigError("nothing to run")
        regression.check_tests(planned, names)
    folder = output_directory(output)
    how = regression.Settings(folder, sim, seed, level == "full", waves, coverage, tuple(names), common, steps)
    print(f"{len(planned)} simulations with {sim}, seed {seed}", file=sys.stderr)
    tests, covered = regression.regress(planned, how, _show)
    command = common + "".join(f" --block {name}" for name in blocks) + " --training" * training
    # A part of the tests cannot hit everything.
    bins = {} if names else plan.cover_bins(planned)
    content = results.write(folder, tests, command, covered, bins)
    write_json(json_file, content)
    passed = content["tests"] - content["failures"] - content["skipped"]
    print(f"{folder / 'report.md'}: {content['tests']} tests, {passed} passed, {content['failures']} failed", file=sys.stderr)
    for result in tests:
        if result.status == results.FAILED:
            print(f"failed: {result.group} {result.name}\n  repeat: {result.repeat}", file=sys.stderr)
    if content["failures"]:
        raise typer.Exit(1)


def _show(result: object) -> None:
    """One line per finished test."""
    from cdu_verif.regression.results import TestResult

    assert isinstance(result, TestResult)
    print(f"{result.status:4}  {result.group:44} {result.name}", file=sys.stderr)
