"""``cdu dqt``: quantisation tables that fit activations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED

from cdu_cli.option_fields import training_setup, with_options
from cdu_cli.options import ImageOptions, JsonOption, OutputOption, SizeOptions, SOption, given
from cdu_cli.progress import ProgressBar, command_line, publish


@dataclass(frozen=True)
class TableOptions:
    """Options of the table that is searched, by their names in :class:`cdu_dqt.study.DqtSettings`."""

    alpha: Annotated[float, typer.Option(help="Weight of the error, 0 to 1; of the rate 1 - alpha.")] = 0.1
    kind: Annotated[str, typer.Option(help="div (divisors 1-255, jpeg-base) or shift (powers of two, jpeg-act).")] = "div"
    rate: Annotated[str, typer.Option(help="entropy, as in the paper, or what is written: zvc (jpeg-act), gmc (jpeg-gmc).")] = (
        "entropy"
    )
    optimizer: Annotated[str, typer.Option(help="search (exact) or sgd (finite differences, as in the paper).")] = "search"
    rounding: Annotated[str | None, typer.Option(help="trunc (default of shift) or half_away (default of div).")] = None
    rec: Annotated[float | None, typer.Option(help="Reconstruction point of shifts, 0 to 0.5 steps; with gmc 0.375.")] = None
    S: SOption = None


@dataclass(frozen=True, kw_only=True)
class DqtOptions:
    """Options of ``cdu dqt``."""

    output: OutputOption
    table: TableOptions
    images: ImageOptions
    epochs: Annotated[int, typer.Option(help="Epochs of training; the first step of each is recorded.")] = 3
    batch: Annotated[int, typer.Option(help="Images per step.")] = 32
    size: SizeOptions
    seed: Annotated[int, typer.Option(help="Of the training and of SGD.", min=0, max=MAX_SEED)] = 0
    recorded: Annotated[
        Path | None,
        typer.Option("--input", help="Use these activations, .npz of float arrays (N, C, H, W), and train nothing."),
    ] = None
    held_out: Annotated[
        Path | None,
        typer.Option(help="Measure on these, .npz; else on a network one deeper, trained from the next seed."),
    ] = None
    record: Annotated[Path | None, typer.Option(help="Also write the recorded activations to this .npz.")] = None
    json_file: JsonOption = None


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    epilog = "Example: cdu dqt --alpha 0.02 --kind shift --rate zvc -o build/dqt"
    app.command(epilog=epilog)(with_options(DqtOptions, dqt))


def dqt(options: DqtOptions) -> None:
    """Find a quantisation table for activations and compare it with the known ones.

    Writes table.json (for --dqt of other commands), report.md, rate_distortion.png and results.json.
    """
    import torch
    from cdu_dqt.find_table import TableSettings, find_table
    from cdu_dqt.study import DqtSettings

    table, setup = DqtSettings(**given(**vars(options.table))), training_setup(options)
    wanted = TableSettings(table, setup, options.seed, options.recorded, options.held_out, options.record)
    torch.set_num_threads(1)
    with ProgressBar() as shown:
        report = find_table(wanted, command_line(), shown)
    publish(report, options.output, options.json_file)
