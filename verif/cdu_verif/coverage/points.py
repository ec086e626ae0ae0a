"""Points of coverage of one block, over all parameter sets that it was simulated with.

Parameter sets are different Verilog files. A toggle is the same point in all of them: module, signal, bit and direction.
Lines, branches and expressions have no names that survive a change of parameters, so they are the same point only where their
modules have the same text; points that differ between two files are counted for each of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cdu_verif.simulation.coverage import Count

#: Suffix that Verilator adds to the name of a module with other than default parameters: ``cdu_tiny__ram_1r1w__A4_D10``, or
#: ``__pi1`` where that would be long.
_PARAMETERS = re.compile(r"__(?:pi[0-9]+|[A-Z]+[0-9a-z]+(?:_[A-Z]+[0-9a-z]+)*)$")
#: Part of the name of a module that was too long; the rest is a hash.
_SHORTENED = "__Vhsh"
_MODULE = re.compile(r"^module (\w+)\b.*?^endmodule", re.MULTILINE | re.DOTALL)
_ASSIGNMENT = re.compile(r"^ *assign (\w+) = (.*);$", re.MULTILINE)
#: Signals named by Yosys, with a number that changes with the parameters.
_NUMBERED = re.compile(r"\b(_\d+_)\b(?!\[)")
#: Signal, bit and direction of a toggle.
_TOGGLE = re.compile(r"(?P<signal>\w+(\[\d+\](?=\[))*)(\[(?P<bit>\d+)\])?:(0->1|1->0)")
#: Number of times that Yosys's names are replaced by their assigned expressions, and the greatest length of the text.
_DEPTH, _LENGTH = 3, 160


@dataclass(frozen=True)
class CoverModule:
    """One module of a Verilog file."""

    text: str
    first_line: int  #: of the file, from 1

    @cached_property
    def identity(self) -> str:
        """Return a checksum, equal for modules of the same text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def _assigned(self) -> dict[str, str]:
        return dict(_ASSIGNMENT.findall(self.text))

    def shown(self, count: Count) -> str:
        """Return the text of a point, in the names of the design as far as the text stays short."""
        if count.kind == "toggle":
            return count.text
        line = self._lines[count.line - self.first_line].strip().removeprefix("assign ").rstrip(";")
        return self._named(count.text if count.kind == "expression" else f"{line.partition(' = ')[2] or line}: {count.text}")

    def _named(self, text: str) -> str:
        for _ in range(_DEPTH):
            longer = _NUMBERED.sub(lambda found: self._definition(found[1]), text)
            if len(longer) > _LENGTH:
                break
            text = longer
        return text

    def _definition(self, name: str) -> str:
        return f"({self._assigned[name]})" if name in self._assigned else name


def modules(verilog: str) -> dict[str, CoverModule]:
    """Return the modules of a file by name."""
    return {found[1]: CoverModule(found[0], verilog.count("\n", 0, found.start()) + 1) for found in _MODULE.finditer(verilog)}


@dataclass(frozen=True)
class CoverPoint:
    """One point of a block, counted once however many runs see it."""

    kind: str
    module: str  #: without the name of the top; empty for the top itself
    text: str  #: as :meth:`CoverModule.shown`
    place: tuple[str, int, int, str] | None = None  #: identity of the module, line and column in it, text: not of toggles

    @property
    def signal(self) -> str:
        """Return the signal of a toggle, with its index if it is a memory; empty for another kind."""
        found = self._toggle
        return found["signal"] if found else ""

    @property
    def bit(self) -> int | None:
        """Return the bit of a toggle; None for a signal of one bit, and for another kind."""
        found = self._toggle
        return int(found["bit"]) if found and found["bit"] else None

    @property
    def _toggle(self) -> re.Match[str] | None:
        return _TOGGLE.fullmatch(self.text) if self.kind == "toggle" else None

    @property
    def label(self) -> str:
        """Return the text that waivers' patterns are matched with: ``module: text``, or the text alone in the top."""
        return f"{self.module}: {self.text}" if self.module else self.text


def _module_of(count: Count, known: Mapping[str, CoverModule]) -> str:
    """Return the name in the Verilog of a count's module; if Verilator has hashed it, the module that has the line."""
    if count.module in known or _SHORTENED not in count.module:
        return count.module if count.module in known else _PARAMETERS.sub("", count.module)
    before = [name for name, module in known.items() if module.first_line <= count.line]
    return max(before, key=lambda name: known[name].first_line, default=count.module)


@dataclass
class Seen:
    """Number of times that a point was hit, and its place in the first run that has it."""

    run: str
    line: int  #: of the Verilog of that run
    hits: int = 0
    runs: int = 0  #: a bit for each run of the block, set if the run has the point
    constant_in: int = 0  #: the same, set if the point is a toggle of a bit that Yosys shows to be constant there

    @property
    def constant(self) -> bool:
        """Return whether the point is a toggle of a bit that is constant in all runs that have it."""
        return self.constant_in == self.runs


@dataclass
class Merged:
    """Points of one block, merged over runs."""

    top: str
    seen: dict[CoverPoint, Seen] = field(default_factory=dict)
    runs: int = 0  #: number of runs that were added

    def add(self, run: str, verilog: str, counts: Iterable[Count]) -> None:
        """Add points of a run, labelled ``run``; ValueError if they are not of this Verilog."""
        known, bit = modules(verilog), 1 << self.runs
        self.runs += 1
        for count in counts:
            name = _module_of(count, known)
            if name not in known:
                raise ValueError(f"{run}: the counts are of a module {count.module}, which its Verilog has not")
            module = known[name]
            line = count.line - module.first_line
            if not 0 <= line <= module.text.count("\n"):
                raise ValueError(f"{run}: line {count.line} does not stand in module {count.module}")
            place = None if count.kind == "toggle" else (module.identity, line, count.column, count.text)
            inner = name.removeprefix(self.top).removeprefix("__")
            point = CoverPoint(count.kind, inner, module.shown(count), place)
            seen = self.seen.setdefault(point, Seen(run, count.line))
            seen.hits += count.hits
            seen.runs |= bit

    def mark_constant(self, run: int, bits: Collection[tuple[str, str, int]]) -> None:
        """Note the bits, module, signal and number each, that are constant in a run, counted from 0 as they were added."""
        for point, seen in self.seen.items():
            if seen.runs >> run & 1 and (point.module, point.signal, point.bit or 0) in bits:
                seen.constant_in |= 1 << run

    def uncovered(self) -> list[CoverPoint]:
        """Return the points that no run has hit."""
        return [point for point, seen in self.seen.items() if not seen.hits]

    def of_kind(self, kind: str) -> list[CoverPoint]:
        """Return all points of a kind."""
        return [point for point in self.seen if point.kind == kind]


def verilog_file(folder: Path) -> Path:
    """Return the only Verilog file of a run's folder. Raises FileNotFoundError if there is none, or several."""
    found = sorted(folder.glob("*.v"))
    if len(found) != 1:
        raise FileNotFoundError(f"{folder} holds {len(found)} Verilog files, and not one")
    return found[0]
