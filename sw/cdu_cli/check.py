"""``cdu check``: policies under which a training step of the user's keeps its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cdu_cli.option_fields import with_options
from cdu_cli.options import JsonOption, ThreadsOption, write_json
from cdu_cli.progress import ProgressBar


@dataclass(frozen=True)
class CheckOptions:
    """Argument and options of ``cdu check``."""

    script: Annotated[Path, typer.Argument(help="Python file that defines `model`, and `step()`, which returns the loss.")]
    codec: Annotated[
        str | None,
        typer.Option(help="Policies by name, or policy files, with commas between; several usual ones unless given."),
    ] = None
    threads: ThreadsOption = 1
    json_file: JsonOption = None


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    epilog = "Example: cdu check examples/check_me.py --codec sfpr,blpa --json check.json"
    app.command(epilog=epilog)(with_options(CheckOptions, check))


def check(options: CheckOptions) -> None:
    """Try policies on one training step of your own: cosine of the gradient, ratio, peak, time, and which to take."""
    import torch
    from actcodec.study.check import CANDIDATES
    from actcodec.study.check import check as checked
    from actcodec.study.step_script import names_of

    names = CANDIDATES if options.codec is None else [name.strip() for name in options.codec.split(",")]
    torch.set_num_threads(options.threads)
    defined = names_of(options.script)
    with ProgressBar() as shown:
        shown.begin("policies", len(names))
        found = checked(defined["model"], defined["step"], names, on_policy=lambda done, total: shown.step())
    write_json(options.json_file, found.to_data())
    typer.echo(found.table())
