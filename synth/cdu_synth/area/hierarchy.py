"""The modules of a generated Verilog text, and where the cells of a netlist that was made from it come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MODULE = re.compile(r"^module (\S+?) ?\(.*?^endmodule", re.DOTALL | re.MULTILINE)
#: An instance; one that is called like a word of Verilog is written with a backslash and a blank.
_INSTANCE = re.compile(r"^  (\S+) \\?(\S+) +\($", re.MULTILINE)
#: What flattening puts before the name of a cell: the instances that it stood in, each with a dot behind it.
_PREFIX = re.compile(r"(?:\$flatten)?\\?((?:[^.$\\]+\.)+)")


@dataclass(frozen=True)
class Module:
    """One module: the characters of its text, and the (name, module) of every instance in it."""

    characters: int
    instances: tuple[tuple[str, str], ...]


def modules(verilog: str) -> dict[str, Module]:
    """The modules of a text as Yosys writes it, by name."""
    texts = {found[1]: found[0] for found in _MODULE.finditer(verilog)}
    return {
        name: Module(len(text), tuple((place, kind) for kind, place in _INSTANCE.findall(text) if kind in texts))
        for name, text in texts.items()
    }


def instances(verilog: str, top: str) -> Iterator[tuple[str, str]]:
    """(path, module) of all instances below the module ``top``; a path is ``core.compressor.dct0``."""
    known = modules(verilog)

    def below(module: str, prefix: str) -> Iterator[tuple[str, str]]:
        for name, kind in known[module].instances:
            yield prefix + name, kind
            yield from below(kind, f"{prefix}{name}.")

    return below(top, "")


def place(cell: str) -> str:
    """Path of the instance that a cell of a flattened netlist stood in; empty for the top, or where that is not known.

    A cell that was mapped before its module was flattened bears the path; one that was mapped afterwards has lost it.
    """
    parts = ""
    while found := _PREFIX.match(cell):
        parts += found[1]
        cell = cell[found.end() :]
    return parts.rstrip(".")
