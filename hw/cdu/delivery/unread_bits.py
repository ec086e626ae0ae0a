"""Unread bits in Yosys's Verilog, in which each line is a declaration, an assignment or the connection of a port.

Linters warn of them. Nets to which Yosys gave a name lose bits that nothing mentions, and are called ``unused_12`` if nothing
reads them, a name that linters accept. Inputs, nets with a name of their own and results that are read in part are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_MODULE = re.compile(r"^module (?P<name>\w+) \(\n(?P<body>.*?)^endmodule$", re.MULTILINE | re.DOTALL)
_DECLARED = re.compile(
    r"^  (?P<kind>(?:input |output |inout )? ?(?:wire|reg) )(?:signed )?(?:\[(?P<high>\d+):(?P<low>\d+)\] )?"
    r"(?P<name>\w+|\\\S+ )(?P<memory> \[\d+:\d+\])?[;,]?$"
)
_INSTANCE = re.compile(r"^  (\w+) (?:\w+ \(|#\($)")
_BINDING = re.compile(r"^    \.(?P<port>\w+)\((?P<net>.*)\),?$")
_ASSIGN = re.compile(r"^  assign (?P<written>.+?) = (?P<read>.*)$")
_REGISTER = re.compile(r"^ .*?(?P<written>\\?\w+ ?(?:\[[^\]]*\])?) <= (?P<read>.*)$")
_CONDITION = re.compile(r"\bif \((.*?)\)")
#: A net, all of it or bits of it; not the digits of a constant.
_USE = re.compile(r"(?<![\w'\\])(?P<name>[A-Za-z_]\w*|\\\S+ )(?:\[(?P<high>\d+)(?::(?P<low>\d+))?\])?")
#: Beginnings of the name of a net that nothing reads, and of a name that Yosys made up.
UNREAD = "unused_"
_MADE_UP = re.compile(r"_\d+_")


@dataclass
class _Net:
    """Net of a module: where it is declared, and which of its bits are read and named."""

    name: str
    line: int
    low: int
    high: int
    is_input: bool
    read: set[int] = field(default_factory=set)
    named: set[int] = field(default_factory=set)
    whole: bool = False  #: whether it is named without a range anywhere

    @property
    def unread(self) -> list[int]:
        """Return the bits without a reader, highest first."""
        return [bit for bit in range(self.high, self.low - 1, -1) if bit not in self.read]

    def bits(self, use: re.Match[str]) -> range:
        """Return the bits of a use."""
        if use["high"] is None:
            return range(self.low, self.high + 1)
        return range(int(use["low"] or use["high"]), int(use["high"]) + 1)


def named_unused(text: str) -> str:
    """Return Verilog in which made-up nets have only the bits that are named, and ``unused`` as their name if none is read.

    Assignments to bits without a reader are removed.
    """
    outputs = _outputs(text)
    return _MODULE.sub(lambda module: _without_unread(module[0], outputs), text)


def unread(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each net of delivered Verilog that has unread bits, and the reason for its waiver."""
    outputs = _outputs(text)
    for module in _MODULE.finditer(text):
        begin = text.count("\n", 0, module.start())
        for net in _nets(module[0].splitlines(), outputs).values():
            if net.unread and "unused" not in net.name.lower():
                name = net.name.lstrip("\\")
                bits = f"{name}[{_ranges(net.unread)}]" if net.high > net.low else name
                yield begin + net.line + 1, f"{bits}: {'not needed here' if net.is_input else 'nothing takes it'}"


def _without_unread(module: str, outputs: Mapping[str, frozenset[str]]) -> str:
    lines = module.splitlines()
    while True:
        nets = _nets(lines, outputs)
        kept = [line for line in lines if not _is_needless(line, nets)]
        if kept == lines:
            break
        lines = kept
    made_up = [net for name, net in nets.items() if _MADE_UP.fullmatch(name)]
    taken = set(re.findall(r"\w+", module))
    renamed: dict[str, str] = {}
    for net in made_up:
        if net.named and not net.whole:
            low, high = min(net.named), max(net.named)
            lines[net.line] = lines[net.line].replace(f"[{net.high}:{net.low}]", f"[{high}:{low}]")
            net.low, net.high = low, high
        if net.named and not net.read:
            new = UNREAD + net.name.strip("_")
            while new in taken:
                new += "_"
            renamed[net.name] = new
            taken.add(new)
    text = "\n".join(lines)
    return re.sub(r"\b_\d+_\b", lambda name: renamed.get(name[0], name[0]), text)


def _is_needless(line: str, nets: Mapping[str, _Net]) -> bool:
    """Return whether a line only assigns made-up nets that nothing reads, or declares one that nothing names."""
    if declared := _DECLARED.match(line):
        name = declared["name"]
        return bool(_MADE_UP.fullmatch(name)) and name in nets and not nets[name].named
    assign = _ASSIGN.match(line)
    if not assign:
        return False
    written = [(use, nets.get(use["name"])) for use in _USE.finditer(assign["written"])]
    return all(net and _MADE_UP.fullmatch(net.name) and net.read.isdisjoint(net.bits(use)) for use, net in written)


def _outputs(text: str) -> dict[str, frozenset[str]]:
    """Return the outputs of each module."""
    modules = re.finditer(r"^module (\w+)(.*?)^\s*\);$", text, re.MULTILINE | re.DOTALL)
    return {one[1]: frozenset(re.findall(r"^ *output .*?(\w+),?$", one[2], re.MULTILINE)) for one in modules}


def _nets(lines: list[str], outputs: Mapping[str, frozenset[str]]) -> dict[str, _Net]:
    """Return the nets that lines of a module declare, by name, with the bits that the other lines read and name."""
    nets: dict[str, _Net] = {}
    instance: frozenset[str] = frozenset()

    def seen(text: str, read: bool) -> None:
        for use in _USE.finditer(text):
            if net := nets.get(use["name"].strip()):
                net.named.update(net.bits(use))
                net.whole |= use["high"] is None
                if read:
                    net.read.update(net.bits(use))

    for number, line in enumerate(lines):
        if declared := _DECLARED.match(line):
            if not declared["memory"]:
                name = declared["name"].strip()
                net = _Net(name, number, int(declared["low"] or 0), int(declared["high"] or 0), "input" in declared["kind"])
                nets[name] = net
                if "output" in declared["kind"]:
                    net.read.update(range(net.low, net.high + 1))
        elif (assign := _ASSIGN.match(line)) or (assign := _REGISTER.match(line)):
            seen(assign["written"], read=False)
            seen(assign["read"], read=True)
            # Conditions precede a register, and the index of a written bit may be a net.
            for condition in _CONDITION.findall(line) + re.findall(r"\[([A-Za-z_]\w*)\]", assign["written"]):
                seen(condition, read=True)
        elif binding := _BINDING.match(line):
            seen(binding["net"], read=binding["port"] not in instance)
        elif opened := _INSTANCE.match(line):
            instance = outputs.get(opened[1], frozenset())
        elif " = " not in line:
            seen(line, read=True)
    return nets


def _ranges(bits: list[int]) -> str:
    """Return bits as text such as ``31:12, 3``, highest first."""
    runs: list[list[int]] = []
    for bit in bits:
        if runs and runs[-1][-1] == bit + 1:
            runs[-1][-1] = bit
        else:
            runs.append([bit, bit])
    return ", ".join(f"{high}:{low}" if high != low else str(high) for high, low in runs)
