"""``cdu diagnose``: which compressed tensor hurts the gradient."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from cdu_spec.affine import MAX_SEED
from cdu_tools.errors import UserError
from cdu_tools.files import write_whole

from cdu_cli.options import (
    BitsOption,
    DataOption,
    DatasetOption,
    DepthOption,
    JsonOption,
    LimitOption,
    ModelOption,
    OutputOption,
    RangeOption,
    RatioOption,
    SOption,
    ThreadsOption,
    WidthOption,
    output_directory,
    whole,
    write_json,
)
from cdu_cli.train import torch_device


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu diagnose --codec jpeg-act --dqt optH -o build/diagnosis")(diagnose)


def diagnose(
    output: OutputOption,
    model: ModelOption = "resnet",
    dataset: DatasetOption = None,
    data: DataOption = None,
    limit: LimitOption = None,
    codec: Annotated[str, typer.Option(help="Codec or policy as in cdu train, or a policy file (.toml, .json).")] = "jpeg-act",
    dqt: Annotated[str | None, typer.Option(help="Quantisation table of jpeg-act and jpeg-base.")] = None,
    scale: SOption = None,
    bits: BitsOption = None,
    range_of: RangeOption = None,
    ratio: RatioOption = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training images before the diagnosis.")] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps before the diagnosis, instead of --epochs.")] = None,
    batch: Annotated[int, typer.Option(help="Images per step.")] = 64,
    batches: Annotated[int, typer.Option(help="Batches to diagnose, taken from the training images in order.", min=1)] = 4,
    width: WidthOption = None,
    depth: DepthOption = None,
    learning_rate: Annotated[float | None, typer.Option("--lr", help="Learning rate at the start.")] = None,
    seed: Annotated[int, typer.Option(help="Of weights and order of images.", min=0, max=MAX_SEED)] = 0,
    device: Annotated[str, typer.Option(help="Torch device: cpu, cuda, cuda:1 ...")] = "cpu",
    threads: ThreadsOption = 1,
    json_file: JsonOption = None,
) -> None:
    """Train with a codec, then measure what each compressed tensor alone does to the gradient."""
    if epochs is not None and steps is not None:
        raise UserError("--epochs and --steps exclude each other: give one of them")

    import torch
    from actcodec.study import data as datasets
    from actcodec.study import diagnosis_report, experiment
    from actcodec.training import Diagnosis, policy
    from actcodec.training import diagnose as diagnosed
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    recipe = experiment.Recipe.usual(
        model, width=width, depth=depth, epochs=epochs, steps=steps, batch=batch, learning_rate=learning_rate
    )
    given: dict[str, Any] = {"dqt": dqt, "S": scale, "bits": whole(bits), "range": range_of, "ratio": ratio}
    options = {key: value for key, value in given.items() if value is not None}
    chosen = policy(codec, **options)
    images = datasets.load(experiment.network(model).dataset if dataset is None else dataset, data, limit)
    images = images.to(torch_device(device))
    if batches > experiment.steps_per_epoch(recipe, images):
        raise UserError(f"{batches} batches of {batch} are more than the {len(images.train_inputs)} training images: use fewer")
    network = experiment.initial_model(recipe, images, seed)
    folder = output_directory(output)
    torch.set_num_threads(threads)

    found = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        total = experiment.total_steps(recipe, images)
        bar = progress.add_task(f"training with {codec}", total=total)
        experiment.train(recipe, images, codec, chosen, seed, on_step=lambda: progress.advance(bar), model=network)
        network.train()
        for number in range(batches):
            rows = slice(number * batch, (number + 1) * batch)
            inputs, targets = images.train_inputs[rows], images.train_targets[rows]

            def step(inputs: torch.Tensor = inputs, targets: torch.Tensor = targets) -> torch.Tensor:
                return experiment.loss_of(network(inputs), targets, images)

            def passed(done: int, of: int, number: int = number) -> None:
                progress.update(bar, description=f"batch {number + 1} of {batches}", completed=done, total=of)

            chosen.set_samples(None)
            found.append(diagnosed(network, step, chosen, on_pass=passed))
    mean = Diagnosis.mean(found)
    results = {"model": model, "dataset": images.name, "codec": codec, "steps": total, "batches": batches} | mean.to_data()
    title = f"Which tensor hurts: {model} on {images.name} with {Path(codec).name}"
    setting = (
        f"Network: {model}, width {recipe.width}, depth {recipe.depth}, trained for {total} steps of {batch} images with "
        f"{codec} (seed {seed}), then diagnosed on {batches} batch(es) of training images."
    )
    command = shlex.join(["cdu", *sys.argv[1:]])
    write_whole(folder / "gradient_errors.png", diagnosis_report.bars(title, mean))
    write_whole(folder / "results.json", json.dumps(results, indent=2) + "\n")
    write_whole(folder / "report.md", diagnosis_report.markdown(command, title, setting, mean))
    write_json(json_file, results)
    print(mean.table())
    print(f"written: {folder / 'report.md'}, gradient_errors.png, results.json", file=sys.stderr)
