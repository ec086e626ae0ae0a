"""Entry point of the ``cdu`` command: registers the subcommands, turns user errors into one sentence and exit code 2."""

from __future__ import annotations

import sys

import typer
from cdu_spec.errors import UserError

from cdu_cli import (
    compare,
    compress,
    diagnose,
    dqt,
    export_jpeg,
    fit_levels,
    formal,
    generate,
    inventory,
    offload,
    pdk,
    power,
    summary,
    sweep,
    synth,
    train,
    vectors,
    verify,
)

app = typer.Typer(
    name="cdu",
    help="Generate, verify and cost compression/decompression units for DNN training, and train through them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for module in (
    inventory,
    generate,
    verify,
    formal,
    synth,
    compare,
    pdk,
    sweep,
    power,
    train,
    diagnose,
    dqt,
    fit_levels,
    offload,
    compress,
    export_jpeg,
    vectors,
    summary,
):
    module.register(app)


def main() -> None:
    """Run the command line."""
    try:
        app()
    except UserError as error:
        print(f"cdu: error: {error}", file=sys.stderr)
        sys.exit(2)
