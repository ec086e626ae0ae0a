"""``cdu diagnose``: which compressed tensor hurts the gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED

from cdu_cli.option_fields import training_setup, with_options
from cdu_cli.options import (
    BitsOption,
    ImageOptions,
    JsonOption,
    OutputOption,
    RangeOption,
    RatioOption,
    SizeOptions,
    SOption,
    ThreadsOption,
    given,
)
from cdu_cli.progress import ProgressBar, command_line, publish


@dataclass(frozen=True)
class DiagnosedCodecOptions:
    """Options of the codec of ``cdu diagnose``, by their names in the codec."""

    dqt: Annotated[str | None, typer.Option(help="Quantisation table of jpeg-act and jpeg-base.")] = None
    S: SOption = None
    bits: BitsOption = None
    range: RangeOption = None
    ratio: RatioOption = None


@dataclass(frozen=True, kw_only=True)
class DiagnoseOptions:
    """Options of ``cdu diagnose``."""

    output: OutputOption
    images: ImageOptions
    codec: Annotated[str, typer.Option(help="Codec or policy as in cdu train, or a policy file (.toml, .json).")] = "jpeg-act"
    codec_options: DiagnosedCodecOptions
    epochs: Annotated[int | None, typer.Option(help="Passes over the training images before the diagnosis.")] = None
    steps: Annotated[int | None, typer.Option(help="Training steps before the diagnosis, instead of --epochs.")] = None
    batch: Annotated[int, typer.Option(help="Images per step.")] = 64
    batches: Annotated[int, typer.Option(help="Batches to diagnose, taken from the training images in order.", min=1)] = 4
    size: SizeOptions
    learning_rate: Annotated[float | None, typer.Option("--lr", help="Learning rate at the start.")] = None
    seed: Annotated[int, typer.Option(help="Of weights and order of images.", min=0, max=MAX_SEED)] = 0
    device: Annotated[str, typer.Option(help="Torch device: cpu, cuda, cuda:1 ...")] = "cpu"
    threads: ThreadsOption = 1
    json_file: JsonOption = None


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    epilog = "Example: cdu diagnose --codec jpeg-act --dqt optH -o build/diagnosis"
    app.command(epilog=epilog)(with_options(DiagnoseOptions, diagnose))


def diagnose(options: DiagnoseOptions) -> None:
    """Train with a codec, then measure what each compressed tensor alone does to the gradient."""
    import torch
    from actcodec.study.diagnose_codec import DiagnosisSettings, diagnose_codec

    setup, codec_options = training_setup(options), given(**vars(options.codec_options))
    wanted = DiagnosisSettings(setup, options.codec, codec_options, options.batches, options.seed)
    torch.set_num_threads(options.threads)
    with ProgressBar() as shown:
        report = diagnose_codec(wanted, command_line(), shown)
    publish(report, options.output, options.json_file)
