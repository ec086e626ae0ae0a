"""Reader of standard-cell libraries in Liberty format: areas, leakage, functions, delay and setup tables."""

from __future__ import annotations

import gzip
import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

from cdu_tools.errors import UserError, reason

from cdu_synth.library.functions import evaluate

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}();:,]|[^\s{}();:,"]+', re.DOTALL)
_IGNORED = re.compile(r"/\*.*?\*/|\\\r?\n", re.DOTALL)
#: Groups that make up most of a library's text and are not needed here.
_SKIPPED = {"internal_power", "leakage_power", "output_current_rise", "output_current_fall", "receiver_capacitance"}
_SECONDS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0, "ps": 1e-3, "fs": 1e-6}
WATTS = {"W": 1e6, "mW": 1e3, "uW": 1.0, "nW": 1e-3, "pW": 1e-6}


class LibertyError(UserError, ValueError):
    """Unusable library file; the message says what is wrong with it."""


@dataclass
class LibertyGroup:
    """One group ``kind (arguments) { ... }`` of a Liberty file."""

    kind: str
    arguments: tuple[str, ...]
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: list[LibertyGroup] = field(default_factory=list)

    def text(self, name: str, default: str = "") -> str:
        """Return a simple attribute as text."""
        return self.attributes.get(name, (default,))[0]

    def number(self, name: str, default: float = 0.0) -> float:
        """Return a numeric attribute."""
        return float(self.text(name, str(default)))

    def all(self, *kinds: str) -> Iterator[LibertyGroup]:
        """Yield the direct subgroups of some kinds."""
        return (group for group in self.groups if group.kind in kinds)


@dataclass(frozen=True)
class DelayTable:
    """A delay, transition or constraint table over (first transition, load or second transition), bilinear between points.

    Outside its points it is extrapolated with the slope of the outermost segments.
    """

    rows: tuple[float, ...]
    columns: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]

    def at(self, row: float, column: float) -> float:
        """Return the interpolated value."""
        i, p = _segment(self.rows, row)
        j, q = _segment(self.columns, column)
        low, high = self.values[i], self.values[min(i + 1, len(self.rows) - 1)]
        k = min(j + 1, len(self.columns) - 1)
        return (low[j] * (1 - q) + low[k] * q) * (1 - p) + (high[j] * (1 - q) + high[k] * q) * p


@dataclass(frozen=True)
class Arc:
    """A timing arc between two pins of a cell.

    ``delays`` and ``transitions`` hold the tables for a rising and a falling output; a setup arc has the constraints for a
    rising and a falling data input in ``delays`` and no transitions.
    """

    source: str
    target: str
    kind: str
    sense: str
    delays: tuple[DelayTable | None, DelayTable | None]
    transitions: tuple[DelayTable | None, DelayTable | None]


@dataclass(frozen=True)
class ClockGate:
    """Pins of a cell that passes a clock while its latched enable is high; ``test`` is empty if there is no test pin."""

    enable: str
    clock: str
    output: str
    test: str = ""


@dataclass(frozen=True)
class Latch:
    """Pins of a latch that is transparent while its enable is high."""

    data: str
    enable: str
    output: str


@dataclass(frozen=True)
class Cell:
    """One cell: area in um2, leakage in uW, input capacitances, output functions, arcs.

    ``clock_gate`` has the pins of a cell that gates the clock of flip-flops with rising edge, ``latch`` those of a latch
    without set and reset; ``macro`` is true for a memory, which is no cell in a row. Bits of a bus are pins, ``A[0]``.
    """

    name: str
    area: float
    leakage_uw: float | None
    usable: bool
    flip_flop: bool
    capacitances: dict[str, float]
    functions: dict[str, str]
    arcs: tuple[Arc, ...]
    setups: tuple[Arc, ...]
    clock_gate: ClockGate | None = None
    macro: bool = False
    latch: Latch | None = None

    def computes(self, function: Callable[..., bool], inputs: int) -> bool:
        """Return whether the cell is a gate with one output that computes ``function`` of its ``inputs`` inputs."""
        if len(self.capacitances) != inputs or len(self.functions) != 1 or self.flip_flop or self.area <= 0:
            return False
        (text,) = self.functions.values()
        try:
            return all(
                evaluate(text, dict(zip(self.capacitances, bits, strict=True))) == function(*bits)
                for bits in product((False, True), repeat=inputs)
            )
        except (KeyError, ValueError):
            return False


@dataclass(frozen=True)
class Library:
    """Cells of one library, which may consist of several files.

    Parameters
    ----------
    name
        Name by which the user knows the library.
    files
        The files, in order.
    sha256
        Checksum of the (unpacked) contents of all files in order.
    cells
        Cells by name.
    time_ns
        Nanoseconds per unit of time in the tables.
    units
        Units of time and capacitance, as stated in the last file.
    dont_use
        Names of cells not to map onto, besides those that the files mark.
    """

    name: str
    files: tuple[Path, ...]
    sha256: str
    cells: dict[str, Cell]
    time_ns: float
    units: str = ""
    dont_use: tuple[str, ...] = ()

    @property
    def gate(self) -> Cell:
        """Return the gate in which areas are counted: the smallest two-input NAND, found by its function.

        Raises LibertyError if the library has none.
        """
        found = [cell for cell in self.cells.values() if cell.usable and cell.computes(_nand, inputs=2)]
        if not found:
            raise LibertyError(f"library {self.name} has no two-input NAND, in which areas are counted: use another one")
        return min(found, key=lambda cell: (cell.area, cell.name))

    @property
    def clock_gate(self) -> Cell | None:
        """Return the smallest cell that gates a clock, without a test pin if possible; None if the library has none."""
        found = [cell for cell in self.cells.values() if cell.usable and cell.clock_gate]
        return min(found, key=lambda cell: (cell.area, cell.name), default=None)

    @property
    def latch(self) -> Cell | None:
        """Return the smallest latch that is transparent while its enable is high; None if the library has none."""
        found = [cell for cell in self.cells.values() if cell.usable and cell.latch]
        return min(found, key=lambda cell: (cell.area, cell.name), default=None)


def contents(path: Path) -> str:
    """Return the text of a Liberty file, decompressed if its name ends in ``.gz``.

    Raises LibertyError if it cannot be read.
    """
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", errors="replace")
    except (OSError, EOFError, gzip.zlib.error) as error:  # type: ignore[attr-defined]
        raise LibertyError(f"cannot read the library {path}: {reason(error)}") from None


def read(name: str, files: Sequence[Path], dont_use: Sequence[str] = ()) -> Library:
    """Read a library of one or several files; cells whose names match a pattern of ``dont_use`` are not mapped onto.

    Raises LibertyError for files that cannot be read or are not Liberty libraries.
    """
    cells: dict[str, Cell] = {}
    digest, time_ns, units = hashlib.sha256(), 1.0, ""
    for path in files:
        text = contents(path)
        digest.update(text.encode())
        try:
            top = parse(text)
            time_ns = unit(top.text("time_unit", "1ns"), _SECONDS)
            load, load_unit = top.attributes.get("capacitive_load_unit", ("1", "pf"))
            units = f"{time_ns:g} ns and {float(load):g} {load_unit.lower()}"
            templates = {group.arguments[0]: group for group in top.all("lu_table_template")}
            power_uw = unit(top.text("leakage_power_unit", "1nW"), WATTS)
            buses = {group.arguments[0]: group for group in top.all("type")}
            cells |= {cell.arguments[0]: _cell(cell, templates, power_uw, buses) for cell in top.all("cell")}
        except (ValueError, IndexError, KeyError, AttributeError, StopIteration) as error:
            raise LibertyError(f"{path} is not a Liberty library: {error}") from None
    if not cells:
        raise LibertyError(f"{', '.join(map(str, files))} holds no cells: use a standard-cell library")
    unwanted = tuple(cell for cell in cells if any(fnmatchcase(cell, pattern) for pattern in dont_use))
    cells |= {cell: replace(cells[cell], usable=False) for cell in unwanted}
    return Library(name, tuple(files), digest.hexdigest(), cells, time_ns, units, unwanted)


def parse(text: str, skipped: Collection[str] = _SKIPPED) -> LibertyGroup:
    """Return the ``library`` group of a Liberty text, without groups of the ``skipped`` kinds.

    Raises ValueError if there is none, or if the text is truncated.
    """
    tokens = iter(_TOKEN.findall(_IGNORED.sub(" ", text)))
    root = LibertyGroup("", ())
    _body(tokens, root, skipped)
    library = next(root.all("library"), None)
    if library is None:
        raise ValueError("it has no library group")
    return library


def _body(tokens: Iterator[str], group: LibertyGroup, skipped: Collection[str]) -> None:
    """Read statements into ``group`` up to its closing brace."""
    for word in tokens:
        if word == "}":
            return
        if word == ";":
            continue
        mark = next(tokens, None)
        if mark == ":":
            group.attributes[word] = (_plain(next(tokens)),)
            # An expression such as `VDD + 0.5` ends with the line or a semicolon; only its first word is needed here.
        elif mark == "(":
            arguments = []
            while (token := next(tokens)) != ")":
                if token != ",":
                    arguments.append(_plain(token))
            follower = next(tokens, ";")
            if follower == "{":
                child = LibertyGroup(word, tuple(arguments))
                if word in skipped:
                    _skip(tokens)
                else:
                    _body(tokens, child, skipped)
                    group.groups.append(child)
            else:
                group.attributes[word] = tuple(arguments)
        # Anything else is the rest of an expression.
    if group.kind:
        raise ValueError(f"it ends inside the group {group.kind}")


def _skip(tokens: Iterator[str]) -> None:
    depth = 1
    while depth:
        token = next(tokens)
        depth += (token == "{") - (token == "}")


def _plain(token: str) -> str:
    return token[1:-1] if token.startswith('"') else token


def unit(text: str, scale: dict[str, float]) -> float:
    match = re.fullmatch(r"\s*([\d.]+)\s*(\w+)\s*", text)
    if match is None or match[2] not in scale:
        raise ValueError(f"unit {text!r} is unknown")
    return float(match[1]) * scale[match[2]]


def _numbers(texts: Sequence[str]) -> tuple[float, ...]:
    return tuple(float(word) for text in texts for word in text.replace(",", " ").split())


def _segment(points: tuple[float, ...], value: float) -> tuple[int, float]:
    """Return the index of the segment of a value, and the position in it (below 0 or above 1 outside the points)."""
    if len(points) == 1:
        return 0, 0.0
    i = min(max(bisect_right(points, value) - 1, 0), len(points) - 2)
    return i, (value - points[i]) / (points[i + 1] - points[i])


def table(group: LibertyGroup, templates: dict[str, LibertyGroup], constraint: bool) -> DelayTable:
    """Return a table with the input (or data) transition along its rows, the load (or clock transition) along its columns."""
    template = templates.get(group.arguments[0] if group.arguments else "", LibertyGroup("", ()))
    first = _numbers(group.attributes.get("index_1") or template.attributes.get("index_1") or ("0",))
    second = _numbers(group.attributes.get("index_2") or template.attributes.get("index_2") or ("0",))
    variables = template.text("variable_1"), template.text("variable_2")
    flat = _numbers(group.attributes["values"])
    if len(flat) == 1:
        return DelayTable((0.0,), (0.0,), (flat,))
    if not variables[1] and "index_2" not in group.attributes:
        second = (0.0,)
    if len(flat) != len(first) * len(second):
        raise ValueError(f"a table of {len(first)} x {len(second)} points has {len(flat)} values")
    values = tuple(flat[i * len(second) : (i + 1) * len(second)] for i in range(len(first)))
    wanted = ("constrained_pin_transition",) if constraint else ("input_net_transition", "input_transition_time")
    if variables[0] and variables[0] not in wanted:
        return DelayTable(second, first, tuple(zip(*values, strict=True)))
    return DelayTable(first, second, values)


def _pins(cell: LibertyGroup, buses: dict[str, LibertyGroup]) -> Iterator[tuple[str, LibertyGroup]]:
    """Yield name and group of every pin; pins of a bus have the attributes of the bus and their own."""
    yield from ((pin.arguments[0], pin) for pin in cell.all("pin"))
    for bus in cell.all("bus"):
        name, kind = bus.arguments[0], buses[bus.text("bus_type")]
        ends = int(kind.number("bit_from")), int(kind.number("bit_to"))
        for bit in range(min(ends), max(ends) + 1):
            own = [pin for pin in bus.all("pin") if _covers("".join(pin.arguments), name, bit)]
            attributes = {key: value for group in (bus, *own) for key, value in group.attributes.items()}
            yield (
                f"{name}[{bit}]",
                LibertyGroup("pin", (), attributes, [inner for group in (bus, *own) for inner in group.groups]),
            )


def _covers(pins: str, bus: str, bit: int) -> bool:
    """Return whether ``A[5:0]`` or ``A[3]`` includes bit ``bit`` of bus ``A``."""
    match = re.fullmatch(rf"{re.escape(bus)}\[(\d+)(?::(\d+))?\]", pins)
    ends = sorted(int(end) for end in match.groups() if end) if match else []
    return bool(ends) and ends[0] <= bit <= ends[-1]


def _cell(group: LibertyGroup, templates: dict[str, LibertyGroup], power_uw: float, buses: dict[str, LibertyGroup]) -> Cell:
    capacitances: dict[str, float] = {}
    functions: dict[str, str] = {}
    arcs: list[Arc] = []
    setups: list[Arc] = []
    for target, pin in _pins(group, buses):
        if pin.text("direction") == "input":
            capacitances[target] = pin.number("capacitance")
        if pin.text("function"):
            functions[target] = pin.text("function")
        for timing in pin.all("timing"):
            kind = timing.text("timing_type", "combinational")
            setup = kind.startswith("setup")
            if not setup and kind not in ("combinational", "rising_edge", "falling_edge"):
                continue
            tables = {sub.kind: table(sub, templates, setup) for sub in timing.groups if "values" in sub.attributes}
            names = ("rise_constraint", "fall_constraint") if setup else ("cell_rise", "cell_fall")
            delays = tables.get(names[0]), tables.get(names[1])
            transitions = tables.get("rise_transition"), tables.get("fall_transition")
            for source in timing.text("related_pin").split():
                arc = Arc(source, target, kind, timing.text("timing_sense", "non_unate"), delays, transitions)
                (setups if setup else arcs).append(arc)
    leakage = group.number("cell_leakage_power") * power_uw if "cell_leakage_power" in group.attributes else None
    unwanted = group.text("dont_use") == "true"
    flip_flop = any(True for _ in group.all("ff"))
    return Cell(
        group.arguments[0],
        group.number("area"),
        leakage,
        not unwanted,
        flip_flop,
        capacitances,
        functions,
        tuple(arcs),
        tuple(setups),
        _clock_gate(group),
        any(True for _ in group.all("memory")),
        _latch(group, capacitances, functions),
    )


def _clock_gate(group: LibertyGroup) -> ClockGate | None:
    """Return a cell's clock gate; None for a gate of the other edge, or with an output that shows its latch."""
    if group.text("clock_gating_integrated_cell") not in ("latch_posedge", "latch_posedge_precontrol"):
        return None
    roles = ("enable", "clock", "out", "test")
    pins = {
        role: pin.arguments[0] for pin in group.all("pin") for role in roles if pin.text(f"clock_gate_{role}_pin") == "true"
    }
    return ClockGate(pins["enable"], pins["clock"], pins["out"], pins.get("test", ""))


def _latch(group: LibertyGroup, inputs: Collection[str], functions: Mapping[str, str]) -> Latch | None:
    """Return a cell's latch, if data and enable are its only inputs; None for all other cells."""
    for latch in group.all("latch"):
        data, enable = latch.text("data_in"), latch.text("enable")
        output = next((pin for pin, function in functions.items() if function == latch.arguments[0]), None)
        if output and set(inputs) == {data, enable}:
            return Latch(data, enable, output)
    return None


def _nand(a: bool, b: bool) -> bool:
    return not (a and b)
