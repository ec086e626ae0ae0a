"""``cdu fit-levels``: which JPEG quality makes which error in activations, measured on a real training run."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED
from cdu_tools.errors import UserError
from cdu_tools.files import write_whole

from cdu_cli.options import DataOption, LimitOption, OutputOption, output_directory


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("fit-levels", epilog="Example: cdu fit-levels --steps 60 -o build/levels")(fit_levels)


def fit_levels(
    output: OutputOption,
    dataset: Annotated[str, typer.Option(help="Images that a ResNet learns: digits, cifar10 or fashion-mnist.")] = "digits",
    data: DataOption = None,
    limit: LimitOption = None,
    steps: Annotated[
        int, typer.Option(help="Training steps; activations of the first, the middle and the last one count.")
    ] = 300,
    width: Annotated[int, typer.Option(help="Channels of the network's first layers.")] = 16,
    depth: Annotated[int, typer.Option(help="Blocks per stage.")] = 1,
    seed: Annotated[int, typer.Option(help="Of weights and order of images.", min=0, max=MAX_SEED)] = 0,
) -> None:
    """Fit the relation of error and JPEG quality that codec acgc-jpeg picks tables by; write levels.json and levels.png.

    The file goes to the codec's option `levels`. The one that is shipped was written by this command; its first lines say how.
    """
    import torch
    from actcodec.codecs.acgc.acgc_jpeg_codec import takes
    from actcodec.study import data as datasets
    from actcodec.study import experiment, level_fit, level_plot
    from actcodec.study.recording import RecordingPolicy
    from actcodec.training import SavedTensor
    from rich.console import Console
    from rich.progress import Progress

    images = datasets.load(dataset, data, limit)
    recipe = experiment.Recipe(width=width, depth=depth, steps=steps)
    experiment.build_model(recipe, images)
    experiment.steps_per_epoch(recipe, images)
    folder = output_directory(output)
    torch.set_num_threads(1)
    measured = level_fit.measurements()
    names: list[str] = []

    def measure(tensor: SavedTensor, x: torch.Tensor) -> None:
        if takes(x.shape):
            names.append(tensor.module)
            for one in measured:
                one.add(x)

    recorded = sorted({0, steps // 2, steps - 1})
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(f"resnet on {images.name}", total=steps)
        policy = RecordingPolicy(recorded, measure)
        experiment.train(recipe, images, "none", policy, seed, on_step=lambda: progress.advance(bar))
    if not names:
        raise UserError(f"images of {images.name} have no maps of 8x8 values: use larger ones")
    result = level_fit.table(
        measured,
        command=shlex.join(["cdu", *sys.argv[1:]]),
        versions={"cdu": version("cdu"), "torch": torch.__version__, "python": platform.python_version()},
        source={
            "network": f"resnet, width {width}, depth {depth}",
            "images": f"{images.name}: {images.note}",
            "steps": recorded,
            "tensors": len(names),
            "modules": sorted(set(names)),
        },
    )
    write_whole(folder / "levels.json", json.dumps(result, indent=1) + "\n")
    write_whole(folder / "levels.png", level_plot.picture(f"resnet on {images.name}, {len(names)} tensors", measured, result))
    for coder, relation in result["coders"].items():
        deviations = [level["deviation"] for level in relation["levels"]]
        print(
            f"{coder}: {len(deviations)} levels, {relation['channels']} channels, "
            f"deviation of log(error) {min(deviations):.3f} to {max(deviations):.3f}"
        )
    print(f"written: {folder / 'levels.json'}, levels.png", file=sys.stderr)
