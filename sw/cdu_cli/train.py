"""``cdu train``: what compressed activations do to the training of a real network."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED
from cdu_spec.dqt import DQT_HELP
from cdu_tools.errors import UserError

from cdu_cli.option_fields import training_setup, with_options
from cdu_cli.options import (
    BackendOption,
    BitsOption,
    CheckOption,
    ImageOptions,
    JsonOption,
    OutputOption,
    RangeOption,
    RatioOption,
    SizeOptions,
    SOption,
    ThreadsOption,
    codec_backend,
    given,
)
from cdu_cli.progress import ProgressBar, command_line, publish


@dataclass(frozen=True)
class TrainedCodecOptions:
    """Options of the codecs of ``cdu train``, by their names in the codecs."""

    dqt: Annotated[
        str | None,
        typer.Option(help=f"Quantisation table of jpeg-act and jpeg-base: optLH, {DQT_HELP}."),
    ] = None
    S: SOption = None
    bits: BitsOption = None
    range: RangeOption = None
    dpr: Annotated[str | None, typer.Option(help="Number format of gist: fp16 (default), fp10 or fp8.")] = None
    block: Annotated[int | None, typer.Option(help="Side of a cell of division-float (8).")] = None
    parts: Annotated[
        str | None, typer.Option(help="What division-float keeps: both (default), or for comparison low, high, plain.")
    ] = None
    ratio: RatioOption = None


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of ``cdu train``."""

    output: OutputOption
    images: ImageOptions
    codec: Annotated[
        str,
        typer.Option(
            help="Codecs and policies with commas between; none always runs: {policies}; and policy files (.toml, .json)."
        ),
    ] = "none,jpeg-act,sfpr"
    codec_options: TrainedCodecOptions
    epochs: Annotated[int | None, typer.Option(help="Passes over the training images.")] = None
    steps: Annotated[int | None, typer.Option(help="Steps of one run, instead of --epochs.")] = None
    batch: Annotated[int, typer.Option(help="Images per step.")] = 64
    size: SizeOptions
    learning_rate: Annotated[float | None, typer.Option("--lr", help="Learning rate at the start.")] = None
    seeds: Annotated[
        int, typer.Option(help="Number of runs per codec, each with its own weights and order of images.", min=1)
    ] = 3
    seed: Annotated[int, typer.Option(help="First seed.", min=0, max=MAX_SEED)] = 0
    backend: BackendOption = "torch"
    check: CheckOption = False
    device: Annotated[str, typer.Option(help="Torch device: cpu, cuda, cuda:1 ...")] = "cpu"
    threads: ThreadsOption = 1
    json_file: JsonOption = None


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    epilog = "Example: cdu train --codec none,jpeg-act,sfpr --seeds 3 -o build/train"
    app.command(epilog=epilog)(with_options(TrainOptions, train))


def train(options: TrainOptions) -> None:
    """Train a network with and without compressed activations and write report.md, curves.png and results.json."""
    if options.backend == "cocotb":
        raise UserError("backend 'cocotb' is not available in cdu train: use rtl, or cdu verify --training")
    import torch
    from actcodec.study.train_codecs import TrainSettings, train_codecs

    setup, codecs = training_setup(options), [name.strip() for name in options.codec.split(",")]
    wanted = TrainSettings(setup, codecs, given(**vars(options.codec_options)), options.seeds, options.seed, options.backend)
    computed_by = codec_backend(options.backend, options.check)
    torch.set_num_threads(options.threads)
    with ProgressBar() as shown:
        report = train_codecs(wanted, command_line(), shown, computed_by)
    publish(report, options.output, options.json_file)
    if options.check:
        print(f"equal to the golden model's: {computed_by}", file=sys.stderr)
