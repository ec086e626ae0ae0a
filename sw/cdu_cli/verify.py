"""``cdu verify``: regression of the generated Verilog against the golden model."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED

from cdu_cli.options import ConfigOption, JsonOption, OutputOption, SetOption, configuration, distinct
from cdu_cli.progress import ProgressBar, publish

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
    level: Annotated[str, typer.Option(help="pairs, quick, or full (more parameter sets and longer tests).")] = "quick",
    waves: Annotated[bool, typer.Option(help="Record waveforms, dump.fst of each run (Verilator).")] = False,
    waves_format: Annotated[str | None, typer.Option(help="Record them as fst, or as vcd: text, and larger files.")] = None,
    coverage: Annotated[bool, typer.Option(help="Count lines, branches, toggles, expressions (Verilator).")] = False,
    training: Annotated[bool, typer.Option(help="Train a network through the simulated unit instead, with 4 CDUs.")] = False,
    steps: Annotated[
        int | None, typer.Option(help="Training steps (default: 3 on quick, 20 on full).", min=1, max=MAX_STEPS)
    ] = None,
    properties: Annotated[
        Path | None, typer.Option(help="Check the property modules in this folder at AXI ports too (Verilator).")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Simulate generated units with cocotb; every expected value comes from the golden model.

    Writes results.xml (JUnit), report.md and report.json. Exit code 1 when a test fails.
    Every parameter that --set does not fix is varied where a block depends on it.
    """
    chosen = configuration(config, settings)
    blocks, tests = distinct("--block", block), distinct("--test", test)
    from cdu_verif.regression.regression import RunSettings
    from cdu_verif.regression.verify_blocks import VerifySettings, verify_blocks

    given = [("--config", config), *(("--set", item) for item in settings or [])]
    command = " ".join(["cdu verify", *(f"{name} {shlex.quote(value)}" for name, value in given)])
    pinned = [item.partition("=")[0].strip() for item in settings or []]
    recorded = waves_format if waves_format is not None else "fst" if waves else None
    how = RunSettings(output, sim, seed, level, recorded, coverage, tuple(tests), steps, command, properties)
    wanted = VerifySettings(chosen, how, blocks, pinned, training)
    with ProgressBar() as shown:
        report = verify_blocks(wanted, shown)
    publish(report, output, json_file)
