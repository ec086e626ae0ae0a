"""Transformation of a unit for fast simulation: idle parts are not computed.

The hardware is the same, with separate clocks for two kinds of things:

* Parts of the unit that are often idle. A part is idle if a clock edge changes nothing in it and its inputs do not change: then
  the next edge changes nothing either. The harness finds this by trying (harness.cpp), so nothing here depends on the purpose
  of the parts.
* The inputs. Verilator computes everything that depends on inputs each time it is called. Here the inputs pass registers
  outside of the unit, clocked when the harness has changed them.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cdu_tools import yosys

#: Parts, each with its instances from the top: parts that only one direction uses, in both kinds of duplex, and parts that
#: only some modes use.
PARTS = {
    "compress": r"core\.(compressor\.(path|alignment)|compression)",
    "decompress": r"core\.(decompressor\.(path|alignment)|decompression)",
    "dct": r"core\.(compressor\.)?dct\d+",
    "idct": r"core\.decompressor\.idct\d+",
    "control_compress": r"control\.compress",
    "control_decompress": r"control\.decompress",
}
#: The module around the unit.
TOP = "driven"

_MODULE = re.compile(r"^module (?P<name>\w+)\s*\(.*?^endmodule", re.DOTALL | re.MULTILINE)
_INSTANCE = re.compile(r"^  (?P<module>\w+) (?P<name>\w+) \($", re.MULTILINE)
_INPUT = re.compile(r"^  input +wire (?:signed )?(?:\[(?P<high>\d+):0\] )?\\?(?P<name>\S+?) ?,?$", re.MULTILINE)
_STREAM_SIGNAL = re.compile(r"(?P<port>\w+)_t(data|keep|last|valid|ready)")

#: Cheap passes that simplify the design for later ones.
_REDUCE = ("opt_expr", "opt_muxtree", "opt_reduce", "opt_merge", "opt_dff", "opt_expr", "opt_clean -purge")
#: Registers get enable and reset inputs where possible, which a simulator turns into branches; operators get as narrow as
#: their results need. Inner names are not kept: each pass would go through all of them.
_OPTIMISE = ("flatten", "opt_clean -purge", *_REDUCE, "wreduce", "peepopt", *_REDUCE, "write_verilog -noattr gated.v")


@dataclass(frozen=True)
class Instance:
    """An instance of a part: its path from the top, its module and the module's inputs but the clock, with their widths."""

    path: str
    module: str
    inputs: Mapping[str, int]

    @property
    def width(self) -> int:
        """Return the bits of all inputs."""
        return sum(self.inputs.values())


@dataclass(frozen=True)
class Part:
    """Instances with a clock of their own.

    The top has two more ports for them: input ``clock_NAME`` and output ``watch_NAME`` with all their inputs.
    """

    name: str
    instances: tuple[Instance, ...]


def parts(text: str, unit: str, wanted: Mapping[str, str] = PARTS) -> list[Part]:
    """Return the wanted parts that a generated file has."""
    modules = {match["name"]: match[0] for match in _MODULE.finditer(text)}

    def below(module: str, path: str) -> Iterator[tuple[str, str]]:
        """Yield path and module of all instances."""
        for match in _INSTANCE.finditer(modules.get(module, "")):
            inner = f"{path}{match['name']}"
            yield inner, match["module"]
            yield from below(match["module"], f"{inner}.")

    def instance(path: str, module: str) -> Instance:
        inputs = {match["name"]: int(match["high"] or 0) + 1 for match in _INPUT.finditer(modules[module])}
        del inputs["clk"]
        return Instance(path, module, inputs)

    everything = list(below(unit, ""))
    found = []
    for name, pattern in wanted.items():
        instances = [instance(path, module) for path, module in everything if re.fullmatch(pattern, path)]
        if instances:
            found.append(Part(name, tuple(instances)))
    return found


def gated(text: str, unit: str, ports: Mapping[str, tuple[str, int]], found: Sequence[Part]) -> str:
    """Return the unit in one module :data:`TOP`.

    It has the ports of the unit (direction and width by name) and of the parts. An input takes effect at the next edge of its
    drive clock: ``drive_PORT`` for the signals of a stream port except TKEEP, which has ``drive_PORT_tkeep``, and ``drive``
    for all others.
    """
    script = ["read_verilog plain.v", f"hierarchy -check -top {TOP}", "proc"]
    modules = {instance.module: instance for part in found for instance in part.instances}
    for module, instance in modules.items():
        # The inputs in any order: they are only compared with their earlier values.
        script += [f"cd {module}", f"add -output watch {instance.width}"]
        script += [f"connect -set watch {','.join(instance.inputs)}", "cd"]
        script += [f"setattr -mod -set keep_hierarchy 1 {module}"]
    script += ["flatten", f"cd {TOP}"]
    for part in found:
        clock, watch, low = f"clock_{part.name}", f"watch_{part.name}", 0
        script += [f"add -input {clock} 1", f"add -output {watch} {sum(instance.width for instance in part.instances)}"]
        for instance in part.instances:
            script += [f"connect -port unit.{instance.path} clk {clock}"]
            script += [f"connect -port unit.{instance.path} watch {watch}[{low + instance.width - 1}:{low}]"]
            low += instance.width
    script += ["cd", *(f"setattr -mod -unset keep_hierarchy {module}" for module in modules), *_OPTIMISE]
    with tempfile.TemporaryDirectory(prefix="cdu-gates-") as folder:
        directory = Path(folder)
        (directory / "plain.v").write_text(text + _driven(unit, ports), encoding="utf-8")
        yosys.run("\n".join(script) + "\n", directory)
        return (directory / "gated.v").read_text(encoding="utf-8")


def _driven(unit: str, ports: Mapping[str, tuple[str, int]]) -> str:
    """Return the text of the module around a unit."""
    declarations, registers, connections, clocks = [], [], [], set()
    for name, (direction, width) in ports.items():
        declarations.append(f"{direction} [{width - 1}:0] {name}")
        if direction == "output" or name == "clk":
            connections.append(f".{name}({name})")
            continue
        match = _STREAM_SIGNAL.fullmatch(name)
        # Decoding TKEEP is slow, and it rarely changes.
        driver = name if name.endswith("_tkeep") else match and match["port"]
        clocks.add(clock := f"drive_{driver}" if driver else "drive")
        registers += [f"reg [{width - 1}:0] _{name};", f"always @(posedge {clock}) _{name} <= {name};"]
        connections.append(f".{name}(_{name})")
    declarations += [f"input {clock}" for clock in sorted(clocks)]
    body = "\n".join(registers)
    return f"\nmodule {TOP}({', '.join(declarations)});\n{body}\n{unit} unit ({', '.join(connections)});\nendmodule\n"
