"""Heads of the modules in the delivered Verilog.

A comment says what the module is, its head declares the ports (ANSI style), its end sets the initial values of registers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdu_spec.config_rules import RESET_PORTS

#: A module as Yosys writes it: names of the ports in the head, their declarations somewhere in the body.
_MODULE = re.compile(r"^module (?P<name>\w+)\([^;]*\);\n(?P<body>.*?)^endmodule$", re.MULTILINE | re.DOTALL)
#: A name, with the escape of those that are keywords.
_NAME = r"\w+|\\\S+ "
_PORT = re.compile(rf"^  (?P<direction>input|output|inout) (?:signed )?(?:\[\d+:\d+\] )?(?P<name>{_NAME});\n", re.MULTILINE)
_NET = re.compile(
    rf"^  (?P<kind>wire|reg) (?P<range>(?:signed )?(?:\[\d+:\d+\] )?)(?P<name>{_NAME})(?: = (?P<initial>[^;\n]+))?;\n",
    re.MULTILINE,
)
#: Markup that reStructuredText adds to names.
_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
#: Modules of classes that only wrap others.
_WRAPPERS = ("amaranth.hdl.", "cdu.delivery.")
#: Clock and reset, which come first.
CLOCKING = ("clk", *RESET_PORTS.values())


@dataclass(frozen=True)
class _Port:
    """A port with its declaration."""

    name: str
    direction: str
    kind: str
    range: str

    @property
    def text(self) -> str:
        return f"  {self.direction:6} {self.kind:4} {self.range}{self.name}"


def described(design: Any) -> dict[str, str]:
    """Return a comment for each module of Amaranth's ``Design`` by its name: its class and the first line of the docstring."""
    found: dict[str, str] = {}
    for made, fragment in design.elaboratables.items():
        name, kind = ".".join(design.fragments[fragment].name), type(made)
        if not kind.__module__.startswith(_WRAPPERS):
            found.setdefault(name, f"{kind.__module__}.{kind.__qualname__}: {_first_line(kind)}")
    return found


def with_heads(text: str, top: str, order: Sequence[str], comments: Mapping[str, str]) -> str:
    """Return Verilog whose modules have their ports in the head, below a comment, and an ``initial`` block for registers.

    Parameters
    ----------
    text
        Verilog as Yosys writes it, without attributes.
    top, order
        A module and the order of its ports; other modules list clock and reset first, then ports by name.
    comments
        Comment above each module, by the module's name.
    """

    def written(module: re.Match[str]) -> str:
        name = module["name"]
        ports, initial, body = _declared(module["body"])
        inside = [port for port in order if port in ports] if name == top else sorted(ports, key=_by_name)
        head = ",\n".join(ports[port].text for port in inside)
        comment = f"// {comments[name]}\n" if name in comments else ""
        begins = f"  initial begin\n{initial}  end\n" if initial else ""
        return f"{comment}module {name} (\n{head}\n);\n{body}{begins}endmodule"

    return _MODULE.sub(written, text)


def _declared(body: str) -> tuple[dict[str, _Port], str, str]:
    """Return the ports that a body declares by name, the assignments of initial values, and the body without both."""
    directions = {match["name"].strip("\\ "): match["direction"] for match in _PORT.finditer(body)}
    ports: dict[str, _Port] = {}
    initial: list[str] = []

    def kept(net: re.Match[str]) -> str:
        name = net["name"].strip("\\ ")
        if net["initial"]:
            initial.append(f"    {net['name']} = {net['initial']};\n")
        if name in directions:
            ports[name] = _Port(net["name"], directions[name], net["kind"], net["range"])
            return ""
        return f"  {net['kind']} {net['range']}{net['name']};\n"

    rest = _NET.sub(kept, _PORT.sub("", body))
    return ports, "".join(initial), rest


def _by_name(name: str) -> tuple[int, list[tuple[int, str]]]:
    """Return a sorting key: clock and reset first, then names, with the numbers in them compared as numbers."""
    place = CLOCKING.index(name) if name in CLOCKING else len(CLOCKING)
    return place, [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _first_line(kind: type) -> str:
    line = (kind.__doc__ or "").strip().partition("\n")[0]
    return _ROLE.sub(r"\1", line).replace("``", "").replace("`", "")
