"""``cdu diagnose``: which compressed tensor hurts the gradient."""

from __future__ import annotations

from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED

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
    given,
    whole,
)
from cdu_cli.shown import Shown, command_line, publish


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
    import torch
    from actcodec.study.diagnose_codec import DiagnosisSettings, diagnose_codec
    from actcodec.study.setup import TrainingSetup

    setup = TrainingSetup(model, dataset, data, limit, width, depth, epochs, steps, batch, learning_rate, device)
    options = given(dqt=dqt, S=scale, bits=whole(bits), range=range_of, ratio=ratio)
    torch.set_num_threads(threads)
    with Shown() as shown:
        report = diagnose_codec(DiagnosisSettings(setup, codec, options, batches, seed), command_line(), shown)
    publish(report, output, json_file)
