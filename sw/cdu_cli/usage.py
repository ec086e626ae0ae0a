"""Sentences about words that are no command line."""

from __future__ import annotations

from typing import Any

from cdu_tools.near_names import advice, unknown

#: Advice for a value, by the name that pydantic, which typer converts values with, gives to its fault.
_ALLOWED = {
    "int_parsing": "use a whole number",
    "int_parsing_size": "use a smaller number",
    "float_parsing": "use a number",
    "greater_than_equal": "use {ge} or more",
    "less_than_equal": "use {le} or less",
}


def usage_sentence(error: Any) -> str:
    """Return one sentence about typer's error: what was given, and the near or allowed words of the command in its place."""
    place = "cdu" if error.ctx is None else error.ctx.command_path
    there_is = f"`{place} --help` says what there is"
    if (option := getattr(error, "option_name", None)) and hasattr(error, "possibilities"):
        return unknown("option", option, _options(error.ctx), there_is)
    faults = getattr(error.__cause__, "errors", None)
    if faults is not None and (fault := faults()[0])["type"] in _ALLOWED:
        allowed = _ALLOWED[fault["type"]].format(**fault.get("ctx", {}))
        return f"{error.param.opts[0]} {fault['input'] or repr('')} is not allowed: {allowed}"
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
