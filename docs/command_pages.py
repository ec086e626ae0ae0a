"""Pages of the commands, made from what ``cdu COMMAND --help`` says when the site is built."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer.main
from cdu_cli.main import app

FOLDER = "reference/commands"
_EXAMPLES = re.compile(r"\s*\bExamples?: (.*)", re.DOTALL)


def on_config(config: Any, **_: Any) -> Any:
    """Add the pages to the navigation, below Reference."""
    (reference,) = (entry["Reference"] for entry in config.nav if "Reference" in entry)
    index, *others = pages()
    reference.append({"Commands": [index, *({page_title(text): path} for path, text in pages().items() if path in others)]})
    return config


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the pages to the site."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


@cache
def pages() -> dict[str, str]:
    """Return the text of every page by its path: an index, then each command in the order of ``cdu --help``."""
    made, rows = {}, []
    for words, command in commands(typer.main.get_command(app), ()):
        name = "-".join(words)
        made[f"{FOLDER}/{name}.md"] = command_page(words, command)
        first = " ".join(_EXAMPLES.sub("", command.help or "").split("\n\n")[0].split())
        rows.append(f"| [cdu {' '.join(words)}]({name}.md) | {_plain(first)} |")
    index = [
        "# Commands",
        "",
        "`cdu COMMAND --help` prints what the page of a command says. A command exits with 0 only if it succeeded. It prints "
        "progress and errors, one sentence each, to standard error.",
        "",
        "| command | does |",
        "|---|---|",
        *rows,
    ]
    return {f"{FOLDER}/index.md": "\n".join(index) + "\n", **made}


def page_title(text: str) -> str:
    """Return the title of a page."""
    return text.partition("\n")[0].removeprefix("# ")


def commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command below one, with the words that call it."""
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from commands(below, (*words, name)) if hasattr(below, "commands") else [((*words, name), below)]


def command_page(words: tuple[str, ...], command: Any) -> str:
    """Return the page of one command."""
    name = f"cdu {' '.join(words)}"
    context = command.context_class(command, info_name=name)
    command.get_help(context)  # fills in the names of catalogues
    told, examples = _split(command.help or "")
    examples += _split(command.epilog or "")[1]
    lines = [f"# {name}", ""]
    lines += [f"{_plain(' '.join(paragraph.split()))}\n" for paragraph in told.split("\n\n") if paragraph.strip()]
    lines += ["```", command.get_usage(context).removeprefix("Usage: "), "```", ""]
    if examples:
        lines += ["## Examples", "", "```", *examples, "```", ""]
    for kind, title in (("argument", "Arguments"), ("option", "Options")):
        records = [p.get_help_record(context) for p in command.get_params(context) if p.param_type_name == kind]
        rows = [f"| `{usage}` | {_plain(' '.join(text.split()))} |" for usage, text in filter(None, records)]
        lines += [f"## {title}", "", f"| {kind} | meaning |", "|---|---|", *rows, ""] if rows else []
    return "\n".join(lines)


def _split(text: str) -> tuple[str, list[str]]:
    """Return a help text without its examples, and these."""
    found = _EXAMPLES.search(text)
    if found is None:
        return text, []
    return text[: found.start()], [" ".join(line.split()) for line in re.split(r";\s+(?=cdu )", found[1].rstrip(". \n"))]


def _plain(text: str) -> str:
    """Return a text without characters that Markdown would take for its own, outside code."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"([*_|\[\]])", r"\\\1", part.replace("<", "&lt;")) for part in parts[::2]]
    return "".join(parts)
