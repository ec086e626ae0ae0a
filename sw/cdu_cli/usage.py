"""Sentences about words that are no command line."""

from __future__ import annotations

import ast
import re
from typing import Any

from cdu_tools.near_names import advice, unknown

#: Value that typer refuses in its message, and its type where it could not be converted.
_REFUSED = re.compile(r"(.*) is not (?:in the range .*|a valid (int|float).*)\.", re.DOTALL)


def usage_sentence(error: Any) -> str:
    """Return one sentence about typer's error: what was given, and the near or allowed words of the command in its place."""
    place = "cdu" if error.ctx is None else error.ctx.command_path
    there_is = f"`{place} --help` says what there is"
    if (option := getattr(error, "option_name", None)) and hasattr(error, "possibilities"):
        return unknown("option", option, _options(error.ctx), there_is)
    if hasattr(error, "param") and (allowed := _allowed(error)):
        return allowed
    message = error.format_message().rstrip(".")
    return f"{message[0].lower()}{message[1:]}; {there_is}"


def unknown_command(name: str, context: Any) -> str:
    """Return the sentence about a word that is no command of a group."""
    known = context.command.commands
    return f"unknown command {name!r}: {advice(name, known, f'`{context.command_path} --help` says what there is')}"


def _options(context: Any) -> list[str]:
    """Return the options of the command that was called."""
    params = context.command.get_params(context)
    return [word for one in params if one.param_type_name == "option" for word in (*one.opts, *one.secondary_opts)]


def _allowed(error: Any) -> str:
    """Return the sentence about a number that an option or argument does not take; nothing for other values."""
    if not (refused := _REFUSED.fullmatch(error.message)):
        return ""
    value, kind = refused.groups()
    text = ast.literal_eval(value) if kind else value
    if kind == "int":
        use = "a smaller number" if text.isdecimal() else "a whole number"
    elif kind == "float":
        use = "a number"
    else:
        limits = error.param.type
        below = limits.min is not None and float(text) < limits.min
        use = f"{limits.min} or more" if below else f"{limits.max} or less"
    return f"{error.param.opts[0]} {text or repr('')} is not allowed: use {use}"
