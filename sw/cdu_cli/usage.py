"""Sentences about words that are no command line."""

from __future__ import annotations

import re
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


#: Messages about arguments of Python that an option has given.
_VALUE = re.compile(r"\b(\w+) = (?:'([^']*)'|(\S+)) is not allowed")
_SETTING = re.compile(r"\bset (\w+) to (\w+)")
_NO_OPTION = re.compile(r"has no option '(\w+)': (use|did you mean) ([\w, ]+)")


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


def in_options(message: str, context: Any) -> str:
    """Return a message about arguments of Python in the words of the command's options."""
    options = [one for one in context.command.params if one.param_type_name == "option"]
    given = {opt.lstrip("-").replace("-", "_"): opt for one in options for opt in one.opts if opt.startswith("--")}
    typed = {name for name, opt in given.items() for one in options if opt in one.opts and _is_typed(one, context)}

    def value(match: re.Match[str]) -> str:
        told = f"{given.get(match[1])} {match[2] or match[3] or repr('')} is not allowed"
        return told if match[1] in typed else match[0]

    def setting(match: re.Match[str]) -> str:
        return f"use {given[match[1]]} {match[2]}" if match[1] in given else match[0]

    def no_option(match: re.Match[str]) -> str:
        if match[1] not in given:
            return match[0]
        others = [given[name] for name in re.findall(r"\w+", match[3]) if name in given]
        listed = (", " if match[2] == "use" else " or ").join(others)
        advice = f"{match[2]} {listed}" if others else f"`{context.command_path} --help` says what there is"
        return f"has no option {given[match[1]]}: {advice}"

    for form, said in ((_VALUE, value), (_SETTING, setting), (_NO_OPTION, no_option)):
        message = form.sub(said, message)
    return message


def _is_typed(parameter: Any, context: Any) -> bool:
    """Return whether a parameter has its value from the command line."""
    source = context.get_parameter_source(parameter.name)
    return source is not None and source.name == "COMMANDLINE"


def unknown_command(name: str, context: Any) -> str:
    """Return the sentence about a word that is no command of a group."""
    known = context.command.commands
    return f"unknown command {name!r}: {advice(name, known, f'`{context.command_path} --help` says what there is')}"


def _options(context: Any) -> list[str]:
    """Return the options of the command that was called."""
    params = context.command.get_params(context)
    return [word for one in params if one.param_type_name == "option" for word in (*one.opts, *one.secondary_opts)]
