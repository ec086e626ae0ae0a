"""``cdu train``: what compressed activations do to the training of a real network."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED
from cdu_spec.dqt import DQT_HELP
from cdu_tools.errors import UserError

from cdu_cli.options import (
    BackendOption,
    BitsOption,
    CheckOption,
    DataOption,
    DatasetOption,
    DepthOption,
    DprOption,
    JsonOption,
    LimitOption,
    ModelOption,
    OutputOption,
    RangeOption,
    RatioOption,
    SOption,
    ThreadsOption,
    WidthOption,
    codec_backend,
    given,
    whole,
)
from cdu_cli.shown import Shown, command_line, publish


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu train --codec none,jpeg-act,sfpr --seeds 3 -o build/train")(train)


def train(
    output: OutputOption,
    model: ModelOption = "resnet",
    dataset: DatasetOption = None,
    data: DataOption = None,
    limit: LimitOption = None,
    codec: Annotated[
        str,
        typer.Option(
            help="Codecs and policies with commas between; none always runs: {policies}; and policy files (.toml, .json)."
        ),
    ] = "none,jpeg-act,sfpr",
    dqt: Annotated[
        str | None,
        typer.Option(help=f"Quantisation table of jpeg-act and jpeg-base: optLH, {DQT_HELP}."),
    ] = None,
    scale: SOption = None,
    bits: BitsOption = None,
    range_of: RangeOption = None,
    dpr: DprOption = None,
    block: Annotated[int | None, typer.Option(help="Side of a cell of division-float (8).")] = None,
    parts: Annotated[
        str | None, typer.Option(help="What division-float keeps: both (default), or for comparison low, high, plain.")
    ] = None,
    ratio: RatioOption = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training images.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of one run, instead of --epochs.")] = None,
    batch: Annotated[int, typer.Option(help="Images per step.")] = 64,
    width: WidthOption = None,
    depth: DepthOption = None,
    learning_rate: Annotated[float | None, typer.Option("--lr", help="Learning rate at the start.")] = None,
    seeds: Annotated[
        int, typer.Option(help="Number of runs per codec, each with its own weights and order of images.", min=1)
    ] = 3,
    seed: Annotated[int, typer.Option(help="First seed.", min=0, max=MAX_SEED)] = 0,
    backend: BackendOption = "torch",
    check: CheckOption = False,
    device: Annotated[str, typer.Option(help="Torch device: cpu, cuda, cuda:1 ...")] = "cpu",
    threads: ThreadsOption = 1,
    json_file: JsonOption = None,
) -> None:
    """Train a network with and without compressed activations and write report.md, curves.png and results.json."""
    if backend == "cocotb":
        raise UserError("backend 'cocotb' is not available in cdu train: use rtl, or cdu verify --training")
    import torch
    from actcodec.study.setup import TrainingSetup
    from actcodec.study.train_codecs import TrainSettings, train_codecs

    setup = TrainingSetup(model, dataset, data, limit, width, depth, epochs, steps, batch, learning_rate, device)
    options = given(dqt=dqt, S=scale, bits=whole(bits), range=range_of, dpr=dpr, block=block, parts=parts, ratio=ratio)
    wanted = TrainSettings(setup, [name.strip() for name in codec.split(",")], options, seeds, seed, backend)
    computed_by = codec_backend(backend, check)
    torch.set_num_threads(threads)
    with Shown() as shown:
        report = train_codecs(wanted, command_line(), shown, computed_by)
    publish(report, output, json_file)
    if check:
        print(f"equal to the golden model's: {computed_by}", file=sys.stderr)
