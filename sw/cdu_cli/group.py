"""A group of commands that look at the files they are to write before they begin, and whose help has names of catalogues."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import typer
from cdu_tools.distribution import missing_module
from cdu_tools.errors import UserError
from typer.core import TyperCommand, TyperGroup

from cdu_cli.help_names import with_names
from cdu_cli.output_files import check_outputs
from cdu_cli.usage import in_options, unknown_command

#: Extras of pyproject.toml with all that a command needs, for commands that the base installation does not run.
EXTRAS = {
    "registers": "rdl",
    "formal": "formal",
    "soc": "soc",
    "place": "place",
    "fpga": "fpga",
    **dict.fromkeys(("verify", "mutate", "coverage", "vectors"), "verify"),
    **dict.fromkeys(("synth", "sweep"), "synth"),
    **dict.fromkeys(("power", "compare"), "train,synth"),
    **dict.fromkeys(("train", "check", "memory", "diagnose", "dqt", "fit-levels", "offload"), "train"),
    **dict.fromkeys(("compress", "decompress", "info", "export-jpeg"), "train"),
}

#: Words for what an option takes, by the types of Python that typer names.
_WORDS = {"str": "TEXT", "int": "INTEGER", "float": "NUMBER", "Path": "FILE"}


class _Command(TyperCommand):
    """One of these commands."""

    def invoke(self, ctx: Any) -> Any:
        """Check the outputs, then run the command; errors are told in its options and its extra."""
        check_outputs(ctx.params)
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            told = missing_module(error, EXTRAS.get(str(self.name)))
            if told is error:
                raise
            raise UserError(str(told)) from None
        except UserError as error:
            raise UserError(in_options(str(error), ctx)) from None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help with names of catalogues filled in, and with words for what an option takes."""
        for parameter in self.get_params(ctx):
            told: Any = parameter
            if text := getattr(told, "help", None):
                told.help = with_names(text)
            if told.param_type_name == "argument":
                told.display_type = lambda ctx: ""
            elif told.metavar is None and not told.is_flag:
                kind = re.sub(r"<(?:list\[)?(\w+)\]?(?: range)?>", r"\1", told.display_type(ctx))
                told.metavar = _WORDS.get(kind, kind)
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
