"""Names of the nets between instances: ``scales__o__payload`` and not ``o__payload_207``."""

from __future__ import annotations

import re

_MODULE = re.compile(r"^module (\w+).*?^endmodule$", re.MULTILINE | re.DOTALL)
_OUTPUT = re.compile(r"^  output .*?(\w+),?$", re.MULTILINE)
_INSTANCE = re.compile(r"^  (?P<module>\w+) (?P<name>\w+) \(\n(?P<ports>(?:    \.[^\n]*\n)+)  \);$", re.MULTILINE)
#: A port that is a whole net.
_BOUND = re.compile(r"^    \.(\w+)\((\w+)\),?$", re.MULTILINE)
_WIRE = re.compile(r"^  wire (?:signed )?(?:\[\d+:\d+\] )?(\w+);$", re.MULTILINE)
#: Suffix of a name that another signal already has.
_SUFFIX = re.compile(r"_\d+$")


def named_by_instances(text: str) -> str:
    """Verilog in which a wire that is called as a port of an instance, as several are, has the name of its instance and port.

    Of several instances the one that drives it counts, else the first one that has a port of that name.
    """
    outputs = {module[1]: set(_OUTPUT.findall(module[0])) for module in _MODULE.finditer(text)}
    return _MODULE.sub(lambda module: _named(module[0], outputs), text)


def _named(module: str, outputs: dict[str, set[str]]) -> str:
    wires = set(_WIRE.findall(module))
    asked: dict[str, str] = {}
    driven: dict[str, str] = {}
    for instance in _INSTANCE.finditer(module):
        for port, wire in _BOUND.findall(instance["ports"]):
            plain = _SUFFIX.sub("", port)
            if wire in wires and _SUFFIX.sub("", wire) == plain:
                asked.setdefault(wire, f"{instance['name']}__{plain}")
            if port in outputs.get(instance["module"], ()):
                driven[wire] = f"{instance['name']}__{plain}"
    taken = set(re.findall(r"\w+", module))
    names: dict[str, str] = {}
    for wire, name in asked.items():
        chosen = driven.get(wire, name)
        if chosen not in taken:
            names[wire] = chosen
            taken.add(chosen)
    if not names:
        return module
    # Behind a point stands the name of a port.
    return re.sub(rf"(?<![.\w])(?:{'|'.join(names)})\b", lambda match: names[match[0]], module)
