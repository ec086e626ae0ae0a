"""A group of commands that look at the files they are to write before they begin, and whose help has names of catalogues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand

from cdu_cli.names import with_names
from cdu_cli.outputs import check_outputs


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


class Commands(typer.Typer):
    """Implement :class:`typer.Typer`."""

    def command(self, *names: Any, **settings: Any) -> Callable[[Any], Any]:
        """Implement :class:`typer.Typer`."""
        return super().command(*names, **{"cls": _Command, **settings})
