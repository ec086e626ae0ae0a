"""A unit as a simulator computes it fast: what rests is not computed.

The hardware is the same, with clocks of their own for two kinds of things:

* Parts of the unit that often rest. A part rests when a clock edge changes nothing in it and its inputs stay as they are: then
  the next edge changes nothing either. The harness finds that out by trying (harness.cpp), so nothing here relies on what the
  parts are for.
* The inputs. Verilator computes all that depends on inputs each time it is called. Here the inputs pass registers outside of
  the unit, clocked when the harness has changed them.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cdu import yosys

#: Instances, from the top, that are of use to one direction only: those of both kinds of duplex.
PARTS = (
    *("core.compressor", "core.decompressor", "core.compression", "core.decompression"),
    *("control.compress", "control.decompress"),
)
#: The module around the unit.
TOP = "driven"

_MODULE = re.compile(r"^module (?P<name>\w+)\s*\(.*?^endmodule", re.DOTALL | re.MULTILINE)
_INSTANCE = re.compile(r"^  (?P<module>\w+) (?P<name>\w+) \($", re.MULTILINE)
_INPUT = re.compile(r"^  input (?:\[(?P<high>\d+):0\] )?\\?(?P<name>\S+?) ?;$", re.MULTILINE)
_STREAM_SIGNAL = re.compile(r"(?P<port>\w+)_t(data|keep|last|valid|ready)")

#: Registers get enable and reset inputs where they have them, which a simulator turns into branches.
_OPTIMISE = ("flatten", "opt", "opt_dff", "opt_clean", "opt_expr", "opt_clean", "write_verilog -noattr gated.v")


@dataclass(frozen=True)
class Part:
    """A part with a clock of its own.

    The top has two more ports for it: input ``clock_NAME`` and output ``watch_NAME`` with all inputs of the part.
    """

    name: str
    module: str
    instance: str
    inputs: tuple[str, ...]
    width: int


def parts(text: str, unit: str, wanted: Sequence[str] = PARTS) -> list[Part]:
    """The wanted parts that a generated file has."""
    modules = {match["name"]: match[0] for match in _MODULE.finditer(text)}
    found = []
    for instance in wanted:
        module: str | None = unit
        for step in instance.split("."):
            inside = {match["name"]: match["module"] for match in _INSTANCE.finditer(modules.get(module or "", ""))}
            module = inside.get(step)
        if module is not None:
            inputs = {match["name"]: int(match["high"] or 0) + 1 for match in _INPUT.finditer(modules[module])}
            del inputs["clk"]
            found.append(Part(instance.replace(".", "_"), module, instance, tuple(inputs), sum(inputs.values())))
    return found


def gated(text: str, unit: str, ports: Mapping[str, tuple[str, int]], found: Sequence[Part]) -> str:
    """The unit in one module :data:`TOP`.

    It has the ports of the unit (direction and width by name) and of the parts. An input counts from the next edge of its
    drive clock on: ``drive_PORT`` for the signals of a stream port but TKEEP, which has ``drive_PORT_tkeep``, and ``drive`` for
    all others.
    """
    script = ["read_verilog plain.v", f"hierarchy -check -top {TOP}", "proc"]
    for module, part in {part.module: part for part in found}.items():
        # The inputs in any order: they are only compared with what they were.
        script += [f"cd {module}", f"add -output watch {part.width}", f"connect -set watch {','.join(part.inputs)}", "cd"]
        script += [f"setattr -mod -set keep_hierarchy 1 {module}"]
    script += ["flatten", f"cd {TOP}"]
    for part in found:
        script += [f"add -input clock_{part.name} 1", f"add -output watch_{part.name} {part.width}"]
        script += [f"connect -port unit.{part.instance} clk clock_{part.name}"]
        script += [f"connect -port unit.{part.instance} watch watch_{part.name}"]
    script += ["cd", *(f"setattr -mod -unset keep_hierarchy {part.module}" for part in found), *_OPTIMISE]
    with tempfile.TemporaryDirectory(prefix="cdu-gates-") as folder:
        directory = Path(folder)
        (directory / "plain.v").write_text(text + _driven(unit, ports), encoding="utf-8")
        yosys.run("\n".join(script) + "\n", directory)
        return (directory / "gated.v").read_text(encoding="utf-8")


def _driven(unit: str, ports: Mapping[str, tuple[str, int]]) -> str:
    """The text of the module around a unit."""
    declarations, registers, connections, clocks = [], [], [], set()
    for name, (direction, width) in ports.items():
        declarations.append(f"{direction} [{width - 1}:0] {name}")
        if direction == "output" or name == "clk":
            connections.append(f".{name}({name})")
            continue
        match = _STREAM_SIGNAL.fullmatch(name)
        # TKEEP is long in being decoded and rarely another than before.
        driver = name if name.endswith("_tkeep") else match and match["port"]
        clocks.add(clock := f"drive_{driver}" if driver else "drive")
        registers += [f"reg [{width - 1}:0] _{name};", f"always @(posedge {clock}) _{name} <= {name};"]
        connections.append(f".{name}(_{name})")
    declarations += [f"input {clock}" for clock in sorted(clocks)]
    body = "\n".join(registers)
    return f"\nmodule {TOP}({', '.join(declarations)});\n{body}\n{unit} unit ({', '.join(connections)});\nendmodule\n"
