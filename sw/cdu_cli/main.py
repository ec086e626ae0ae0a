"""Entry point of the ``cdu`` command: registers the subcommands, runs what is asked for."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from cdu_tools.errors import UserError

from cdu_cli import (
    check,
    compare,
    compress,
    coverage,
    diagnose,
    dqt,
    export_jpeg,
    fit_levels,
    formal,
    fpga,
    generate,
    info,
    inventory,
    memory,
    mutate,
    offload,
    pdk,
    place,
    power,
    registers,
    soc,
    summary,
    sweep,
    synth,
    train,
    vectors,
    verify,
)
from cdu_cli.errors import INPUT_ERROR, in_one_sentence
from cdu_cli.group import Commands
from cdu_cli.usage import usage_sentence
from cdu_cli.versions import versions

#: Error that typer raises for words that are no command line; the class has no public name.
_UsageError: Any = typer.BadParameter.__mro__[1]


app = Commands(
    name="cdu",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_versions(wanted: bool) -> None:
    """Print the versions if ``--version`` is given, and exit."""
    if wanted:
        for name, version in versions().items():
            typer.echo(f"{name} {version}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_versions, is_eager=True, help="Versions of package, register map and bitstream."
        ),
    ] = False,
) -> None:
    """Generate, verify and cost compression/decompression units for DNN training, and train through them."""


for module in (
    inventory,
    generate,
    registers,
    verify,
    formal,
    mutate,
    coverage,
    soc,
    synth,
    place,
    fpga,
    compare,
    pdk,
    sweep,
    power,
    train,
    check,
    memory,
    diagnose,
    dqt,
    fit_levels,
    offload,
    compress,
    info,
    export_jpeg,
    vectors,
    summary,
):
    module.register(app)


def main() -> None:
    """Run the command line."""
    with in_one_sentence():
        try:
            sys.exit(app(standalone_mode=False))
        except _UsageError as error:
            message, context = error.format_message(), error.ctx
            if context is None or message != context.get_help():
                raise UserError(usage_sentence(error)) from None
            # A group of commands without one of them.
            print(message, file=sys.stderr)
            sys.exit(INPUT_ERROR)
