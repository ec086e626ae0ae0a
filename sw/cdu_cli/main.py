"""Entry point of the ``cdu`` command: registers the subcommands, runs what is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer
from cdu_spec.errors import UserError
from typer.core import TyperCommand

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
from cdu_cli.endings import INPUT_ERROR, in_one_sentence
from cdu_cli.outputs import check_outputs

#: What typer raises for words that are no command line; the class has no public name.
_UsageError: Any = typer.BadParameter.__mro__[1]


class _Command(TyperCommand):
    """A command that looks at the files it is to write before it begins."""

    def invoke(self, ctx: Any) -> Any:
        """See TyperCommand."""
        check_outputs(ctx.params)
        return super().invoke(ctx)


class _Commands(typer.Typer):
    """Commands of this kind."""

    def command(self, *names: Any, **settings: Any) -> Callable[[Any], Any]:
        """See typer.Typer."""
        return super().command(*names, **{"cls": _Command, **settings})


app = _Commands(
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
        try:
            sys.exit(app(standalone_mode=False))
        except _UsageError as error:
            message, context = error.format_message(), error.ctx
            if context is None or message != context.get_help():
                place = "cdu" if context is None else context.command_path
                message = f"{message.rstrip('.')}; `{place} --help` says what there is"
                raise UserError(message[0].lower() + message[1:]) from None
            # A group of commands without one of them.
            print(message, file=sys.stderr)
            sys.exit(INPUT_ERROR)
