"""Modules of a generated Verilog text, and the origin in it of the cells of its netlist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MODULE = re.compile(r"^module (\S+?) ?\(.*?^endmodule", re.DOTALL | re.MULTILINE)
#: An instance; a name that is a keyword of Verilog is written with a backslash and a blank.
_INSTANCE = re.compile(r"^  (\S+) \\?(\S+) +\($", re.MULTILINE)
#: Prefix that flattening adds to the name of a cell: its instances, each followed by a dot.
_PREFIX = re.compile(r"(?:\$flatten)?\\?((?:[^.$\\]+\.)+)")


@dataclass(frozen=True)
class Module:
    """One module: the number of characters of its text, and the (name, module) of every instance in it."""

    characters: int
    instances: tuple[tuple[str, str], ...]


def modules(verilog: str) -> dict[str, Module]:
    """Return the modules of a text as Yosys writes it, by name."""
    texts = {found[1]: found[0] for found in _MODULE.finditer(verilog)}
    return {
        name: Module(len(text), tuple((place, kind) for kind, place in _INSTANCE.findall(text) if kind in texts))
        for name, text in texts.items()
    }


def instances(verilog: str, top: str) -> Iterator[tuple[str, str]]:
    """Yield (path, module) of all instances below the module ``top``; a path is ``core.compressor.dct0``."""
    known = modules(verilog)

    def below(module: str, prefix: str) -> Iterator[tuple[str, str]]:
        for name, kind in known[module].instances:
            yield prefix + name, kind
            yield from below(kind, f"{prefix}{name}.")

    return below(top, "")


def declaration(verilog: str, top: str, net: str) -> tuple[str, int]:
    """Return the module that declares a net of the flattened module ``top`` (``core.dct0.rows.sum[3]``) and the line there.

    The line is counted from 1, and 0 for a net without a name of its own in the text.
    """
    path, _, name = net.partition("[")[0].rpartition(".")
    module = dict(instances(verilog, top)).get(path, top)
    text = next((found for found in _MODULE.finditer(verilog) if found[1] == module), None)
    declared = text and re.search(
        rf"^  (?:(?:input|output|reg|wire)\b.*? )\\?{re.escape(name)}(?: |;|$)", text[0], re.MULTILINE
    )
    return module, verilog.count("\n", 0, text.start() + declared.start()) + 1 if text and declared else 0


def place(cell: str) -> str:
    """Return the path of the instance of a cell in a flattened netlist; empty for the top, or if it is unknown.

    A cell mapped before its module was flattened has the path in its name; a cell mapped afterwards has lost it.
    """
    parts = ""
    while found := _PREFIX.match(cell):
        parts += found[1]
        cell = cell[found.end() :]
    return parts.rstrip(".")
