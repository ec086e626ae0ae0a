"""A group of commands that look at the files they are to write before they begin, and whose help has names of catalogues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from cdu_tools.errors import UserError
from typer.core import TyperCommand, TyperGroup

from cdu_cli.help_names import with_names
from cdu_cli.output_files import check_outputs
from cdu_cli.usage import unknown_command


class _Command(TyperCommand):
    """One of these commands."""

    def invoke(self, ctx: Any) -> Any:
        """Check the outputs, then run the command."""
        check_outputs(ctx.params)
        return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help with names of catalogues filled in."""
        for parameter in self.params:
            if text := getattr(parameter, "help", None):
                parameter.help = with_names(text)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


class _Group(TyperGroup):
    """A group of these commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names; UserError for none, with the near ones."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            raise UserError(unknown_command(args[0], ctx))
        return super().resolve_command(ctx, args)


class Commands(typer.Typer):
    """Implement :class:`typer.Typer`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": _Group, **settings})

    def command(self, *names: Any, **settings: Any) -> Callable[[Any], Any]:
        """Implement :class:`typer.Typer`."""
        return super().command(*names, **{"cls": _Command, **settings})
