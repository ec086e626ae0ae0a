"""``cdu fit-levels``: which JPEG quality makes which error in activations, measured on a real training run."""

from __future__ import annotations

from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED

from cdu_cli.options import DataOption, LimitOption, OutputOption
from cdu_cli.progress import ProgressBar, command_line, publish


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
    from actcodec.study.fit_levels import LevelSettings
    from actcodec.study.fit_levels import fit_levels as fitted
    from actcodec.study.setup import TrainingSetup

    setup = TrainingSetup("resnet", dataset, data, limit, width, depth, steps=steps)
    torch.set_num_threads(1)
    with ProgressBar() as shown:
        report = fitted(LevelSettings(setup, seed), command_line(), shown)
    publish(report, output)
