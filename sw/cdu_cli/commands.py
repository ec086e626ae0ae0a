"""A group of commands that look at the files they are to write before they begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand

from cdu_cli.outputs import check_outputs


class _Command(TyperCommand):
    """One of these commands."""

    def invoke(self, ctx: Any) -> Any:
        """See TyperCommand."""
        check_outputs(ctx.params)
        return super().invoke(ctx)


class Commands(typer.Typer):
    """See typer.Typer."""

    def command(self, *names: Any, **settings: Any) -> Callable[[Any], Any]:
        """See typer.Typer."""
        return super().command(*names, **{"cls": _Command, **settings})
