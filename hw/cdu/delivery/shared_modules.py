"""Merge of modules for instances of the same hardware: Amaranth writes a module for every instance."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MODULE = re.compile(
    r"^(?P<attributes>(?:attribute [^\n]*\n)*)module \\(?P<name>\w+)\n(?P<body>.*?)^end\n", re.MULTILINE | re.DOTALL
)
_CELL = re.compile(r"^(?P<before>\s*cell \\)(?P<type>\w+)(?P<after> )", re.MULTILINE)


def shared_modules(text: str) -> str:
    """Return RTLIL in which only the first of several modules with the same content is kept.

    Modules have the same content if their texts are equal, names of ports and signals included, and their instances are
    instances of the same modules.
    """
    bodies = {match["name"]: match["body"] for match in _MODULE.finditer(text)}
    kept_for: dict[str, str] = {}  #: name of a module that goes, and of the one that takes its place
    while found := _repeated(bodies):
        kept_for |= found
        bodies = {name: _renamed(body, found) for name, body in bodies.items() if name not in found}

    def written(module: re.Match[str]) -> str:
        name = module["name"]
        return "" if name in kept_for else f"{module['attributes']}module \\{name}\n{bodies[name]}end\n"

    return _MODULE.sub(written, text)


def _repeated(bodies: Mapping[str, str]) -> dict[str, str]:
    """Return the names of modules whose content an earlier one has, with the name of that one."""
    first_with: dict[str, str] = {}
    firsts = {name: first_with.setdefault(body, name) for name, body in bodies.items()}
    return {name: first for name, first in firsts.items() if first != name}


def _renamed(body: str, names: Mapping[str, str]) -> str:
    """Return a module's content with other modules for its instances."""
    return _CELL.sub(lambda cell: cell["before"] + names.get(cell["type"], cell["type"]) + cell["after"], body)
