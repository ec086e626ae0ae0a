"""``cdu check``: which policies a training step of one's own bears."""

from __future__ import annotations

import runpy
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from cdu_tools.errors import UserError, unreadable

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

    names = CANDIDATES if options.codec is None else [name.strip() for name in options.codec.split(",")]
    torch.set_num_threads(options.threads)
    model, step = _defined(options.script)
    with ProgressBar() as shown:
        shown.begin("policies", len(names))
        found = checked(model, step, names, on_policy=lambda done, total: shown.step())
    write_json(options.json_file, found.to_data())
    typer.echo(found.table())


def _defined(script: Path) -> tuple[Any, Any]:
    """Run a script and return its ``model`` and ``step``; raise UserError if it lacks one of them or does not run."""
    from torch import nn

    if not script.is_file():
        raise UserError(f"{unreadable(script)}; give a Python file that defines model and step()")
    try:
        names = runpy.run_path(str(script))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        # The text of an error of syntax names its place.
        place = "" if isinstance(error, SyntaxError) else f" ({where.filename}, line {where.lineno})"
        raise UserError(f"{script} does not run: {type(error).__name__}: {error}{place}") from None
    if not isinstance(names.get("model"), nn.Module) or not callable(names.get("step")):
        raise UserError(
            f"{script} does not define what is to be checked: let model be a torch.nn.Module, and step() return the loss"
        )
    return names["model"], names["step"]
