"""``cdu dqt``: quantisation tables that fit activations."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from cdu_spec.affine import MAX_SEED
from cdu_spec.dqt_file import write_table
from cdu_tools.errors import UserError
from cdu_tools.files import write_whole

from cdu_cli.options import (
    DataOption,
    DatasetOption,
    DepthOption,
    JsonOption,
    LimitOption,
    ModelOption,
    OutputOption,
    SOption,
    WidthOption,
    output_directory,
    write_json,
)

if TYPE_CHECKING:
    from actcodec.study.activations import Activation


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu dqt --alpha 0.02 --kind shift --rate zvc -o build/dqt")(dqt)


def dqt(
    output: OutputOption,
    alpha: Annotated[float, typer.Option(help="Weight of the error, 0 to 1; of the rate 1 - alpha.")] = 0.1,
    kind: Annotated[str, typer.Option(help="div (divisors 1-255, jpeg-base) or shift (powers of two, jpeg-act).")] = "div",
    rate: Annotated[str, typer.Option(help="entropy, as in the paper, or zvc, the bits that jpeg-act writes.")] = "entropy",
    optimizer: Annotated[str, typer.Option(help="search (exact) or sgd (finite differences, as in the paper).")] = "search",
    rounding: Annotated[str | None, typer.Option(help="trunc (default of shift) or half_away (default of div).")] = None,
    scale: SOption = None,
    model: ModelOption = "resnet",
    dataset: DatasetOption = None,
    data: DataOption = None,
    limit: LimitOption = None,
    epochs: Annotated[int, typer.Option(help="Epochs of training; the first step of each is recorded.")] = 3,
    batch: Annotated[int, typer.Option(help="Images per step.")] = 32,
    width: WidthOption = None,
    depth: DepthOption = None,
    seed: Annotated[int, typer.Option(help="Of the training and of SGD.", min=0, max=MAX_SEED)] = 0,
    recorded: Annotated[
        Path | None,
        typer.Option("--input", help="Use these activations, .npz of float arrays (N, C, H, W), and train nothing."),
    ] = None,
    held_out: Annotated[
        Path | None,
        typer.Option(help="Measure on these, .npz; else on a network one deeper, trained from the next seed."),
    ] = None,
    record: Annotated[Path | None, typer.Option(help="Also write the recorded activations to this .npz.")] = None,
    json_file: JsonOption = None,
) -> None:
    """Find a quantisation table for activations and compare it with the known ones.

    Writes table.json (for --dqt of other commands), report.md, rate_distortion.png and results.json.
    """
    import torch
    from actcodec.study import data as datasets
    from actcodec.study.activations import load_activations, record_training, save_activations
    from actcodec.study.dqt import plot, report
    from actcodec.study.dqt.study import Settings, study
    from actcodec.study.experiment import Recipe, build_model, network, steps_per_epoch
    from cdu_spec.sfpr import DEFAULT_S
    from rich.console import Console

    if record is not None and recorded is not None:
        raise UserError("--record writes what a training run records, but --input takes its place: give one of them")
    settings = Settings(alpha, kind, rate, optimizer, rounding, DEFAULT_S if scale is None else scale)
    recipe = Recipe.usual(model, width=width, depth=depth, epochs=epochs, batch=batch)
    torch.set_num_threads(1)

    with Console(stderr=True).status("") as status:

        def activations(file: Path | None, recipe: Recipe, seed: int) -> tuple[list[Activation], str]:
            """Read, or recorded from a training run, and the sentence that says so."""
            if file is not None:
                return load_activations(file), f"{file}"
            status.update(f"training {recipe.model}, depth {recipe.depth}")
            images = datasets.load(network(model).dataset if dataset is None else dataset, data, limit)
            build_model(recipe, images)
            steps_per_epoch(recipe, images)
            about = f"{recipe.model} on {images.name} (width {recipe.width}, depth {recipe.depth}, seed {seed}), first step of "
            return record_training(recipe, images, seed), about + f"each of {recipe.epochs} epochs, batch {recipe.batch}"

        fitted, fitted_from = activations(recorded, recipe, seed)
        others, others_from = activations(held_out, replace(recipe, depth=recipe.depth + 1), seed + 1)
        found = study(
            [one.values for one in fitted],
            [one.values for one in others],
            settings,
            seed,
            lambda what: status.update(f"measuring: {what}"),
        )
    folder = output_directory(output)
    if record is not None:
        save_activations(record, fitted)
    command = shlex.join(["cdu", *sys.argv[1:]])
    about = [_about("Tables are looked for on", fitted_from, fitted), _about("Held out:", others_from, others)]
    results = report.results(found) | {"command": command, "activations": fitted_from, "held_out": others_from}
    origin = {"name": f"{kind}, alpha = {alpha:g}", "command": command, "activations": fitted_from, **results["settings"]}
    write_table(folder / "table.json", found.table, origin)
    write_whole(folder / "rate_distortion.png", plot.rate_distortion(others_from, found))
    write_whole(folder / "results.json", json.dumps(results, indent=1) + "\n")
    write_whole(folder / "report.md", report.markdown(command, about, found))
    write_json(json_file, results)
    for one in found.found:
        print(f"{one.name:8} objective {one.objective:.4f}  rate {one.rate:.3f} bits  error {one.distortion:.3f}")
    print(f"written: {folder / 'table.json'}, report.md, rate_distortion.png, results.json", file=sys.stderr)


def _about(what: str, where_from: str, activations: Sequence[Activation]) -> str:
    values = sum(one.values.numel() for one in activations)
    return f"{what} {where_from}: {len(activations)} tensors, {values} values."
