"""Docstrings as the site reads them: as Markdown, and nothing below the list of parameters that is none of them."""

import re
from typing import Any

import griffe

_LIST = re.compile(r"^(Parameters|Attributes)\n-+\n", re.MULTILINE)
_BLANK = re.compile(r"\n\s*\n")
#: Roles of Sphinx, which name things as :class:`~cdu_spec.CduConfig` does.
_ROLE = re.compile(r":\w+:`~?([\w.]+)`")
_DOCTEST = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


def arranged(text: str) -> str:
    """The text with all paragraphs before the first list of parameters or attributes."""
    found = _LIST.search(text)
    if found is None:
        return text
    above, items = [text[: found.start()].rstrip()], []
    for part in _BLANK.split(text[found.start() :]):
        lines = part.splitlines()
        is_item = _LIST.match(part + "\n") or part.startswith(" ") or any(line.startswith(" ") for line in lines[1:])
        (items if is_item else above).append(part)
    return "\n\n".join([*above, *items])


def as_markdown(text: str) -> str:
    """The text with names and examples as Markdown has them."""
    return text if "```" in text else _DOCTEST.sub(r"```pycon\n\g<0>\n```", _ROLE.sub(r"`\1`", text))


class Arranged(griffe.Extension):
    """Changes every docstring that is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(arranged(obj.docstring.value))

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Change that of a package, which is not an object to the reader."""
        self.on_object(obj=pkg)
