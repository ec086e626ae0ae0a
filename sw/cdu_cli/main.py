"""Entry point of the ``cdu`` command: registers the subcommands, runs what is asked for."""

from __future__ import annotations

import typer

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
from cdu_cli.endings import in_one_sentence

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
    with in_one_sentence():
        app()
