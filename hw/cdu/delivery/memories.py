"""Memories of delivered Verilog: one module for all of them, made of registers, latches, or macros that a file names."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdu_spec.config_rules import ConfigError
from cdu_tools.errors import reason
from cdu_tools.texts import read_text

from cdu.parts.ram import RAM_MODULE

#: Module of a clock gate in front of latches, behind the name of the top.
CLOCK_GATE = "__clock_gate"
_HEAD = """\
// A memory with a write and a read port. read_data holds until the next read; no word is read in the cycle that writes it.
module {module} #(
    parameter integer WIDTH = 64,
    parameter integer DEPTH = 64,
    parameter integer ADDRESS_BITS = 6
) (
    input wire clk,
    input wire write_enable,
    input wire [ADDRESS_BITS-1:0] write_address,
    input wire [WIDTH-1:0] write_data,
    input wire read_enable,
    input wire [ADDRESS_BITS-1:0] read_address,
    output wire [WIDTH-1:0] read_data
);
"""
_REGISTERS = """\
    reg [WIDTH-1:0] words [0:DEPTH-1];
    reg [WIDTH-1:0] read_word;
    assign read_data = read_word;
    always @(posedge clk) if (write_enable) words[write_address] <= write_data;
    always @(posedge clk) if (read_enable) read_word <= words[read_address];
"""
#: A latch holds a bit in less than two thirds of a flip-flop's area. Written data are first held in a register; in the next
#: cycle the latches of their word are open while the clock is high, so that the word can be read in that cycle.
_LATCHES = """\
    wire [WIDTH*DEPTH-1:0] words;
    wire [DEPTH-1:0] chosen = {{{{DEPTH-1{{1'b0}}}}, 1'b1}} << read_address;
    reg [WIDTH-1:0] written;
    reg [WIDTH-1:0] read_word;
    assign read_data = read_word;
    always @(posedge clk) if (write_enable) written <= write_data;
    genvar place, number;
    for (place = 0; place < WIDTH; place = place + 1) begin : column
        wire [DEPTH-1:0] bits;
        for (number = 0; number < DEPTH; number = number + 1) assign bits[number] = words[number*WIDTH+place];
        always @(posedge clk) if (read_enable) read_word[place] <= |(bits & chosen);
    end
    for (number = 0; number < DEPTH; number = number + 1) begin : word
        wire open;
        reg [WIDTH-1:0] held;
        assign words[number*WIDTH +: WIDTH] = held;
        {gate} gate (.clk(clk), .enable(write_enable && write_address == number), .gated(open));
        /* verilator lint_off LATCH */
        always @* if (open) held = written;
        /* verilator lint_on LATCH */
    end
"""
#: Clock gate: a latch that is open while the clock is low, and an AND. A library's cell can replace it.
_GATE = """
// Lets a pulse of the clock pass where enable is high before it.
module {gate} (
    input wire clk,
    input wire enable,
    output wire gated
);
    reg pass;
    /* verilator lint_off LATCH */
    always @* if (!clk) pass = enable;
    /* verilator lint_on LATCH */
    assign gated = clk & pass;
endmodule
"""
#: Value that selects latch arrays in place of a file of macros.
LATCHES = "latches"
_CLOCK = "clk"
_ENABLES = ("write_enable", "read_enable")
_ADDRESSES = ("write_address", "read_address")
_DATA = ("write_data", "read_data")
#: Signals that pins of a macro can be connected to; an enable with ~ in front is active low.
SIGNALS = (_CLOCK, *_ENABLES, *_ADDRESSES, *_DATA)
_CONSTANT = re.compile(r"([1-9]\d*)'(?:b([01]+)|d(\d+)|h([0-9a-fA-F]+))", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_KEYS = {"width": int, "depth": int, "macro": str, "macro_width": int, "macro_depth": int, "pins": dict}
_OPTIONAL = {"holds": bool, "liberty": str}


def head(top: str) -> str:
    """Return the beginning of the module of all memories in ``top``, up to its ports."""
    return _HEAD.format(module=f"{top}{RAM_MODULE}")


@dataclass(frozen=True)
class Macro:
    """Macros that implement the memories of one size, as many side by side as the word needs.

    Parameters
    ----------
    width, depth
        Size of the memories in bits and words, as NAME.json lists them.
    macro, macro_width, macro_depth
        Module name of the macro and its size in bits and words; it has separate write and read ports.
    pins
        Connection of each input and output of the macro: one of :data:`SIGNALS`, an active-low enable with ``~``, or a
        constant (``1'b0``).
    holds
        Whether the macro holds its last read data until the next read; otherwise registers are added that do.
    liberty
        Timing and area of the macro, for ``cdu synth``; None leaves it out of both.
    """

    width: int
    depth: int
    macro: str
    macro_width: int
    macro_depth: int
    pins: Mapping[str, str]
    holds: bool = True
    liberty: Path | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.macro):
            raise ConfigError(
                f"macro = {self.macro!r} is not allowed: use the name of its module, of letters, digits and _, not starting "
                "with a digit"
            )
        if min(self.width, self.depth, self.macro_width, self.macro_depth) < 1 or self.macro_depth < self.depth:
            raise ConfigError(
                f"macro {self.macro} of {self.macro_depth} words cannot hold {self.depth} words of {self.width} bits: use one "
                "with as many words or more"
            )
        for pin, signal in self.pins.items():
            plain = signal.removeprefix("~") if signal.removeprefix("~") in _ENABLES else signal
            if not _NAME.fullmatch(pin) or not (plain in SIGNALS or _constant(signal)):
                raise ConfigError(
                    f"pin {pin} = {signal!r} of macro {self.macro} is not allowed: use {', '.join(SIGNALS)}, an enable with "
                    "~ in front, or a constant that fits its size, such as 1'b0"
                )
        used = {signal.removeprefix("~") for signal in self.pins.values()}
        missing = [signal for signal in SIGNALS if signal not in used]
        if missing:
            raise ConfigError(f"no pin of macro {self.macro} is connected to {', '.join(missing)}: connect one")

    @property
    def columns(self) -> int:
        """Return the number of macros side by side."""
        return -(-self.width // self.macro_width)

    def body(self) -> str:
        """Return the instances, as a branch of a generate statement."""
        bits, high = self.columns * self.macro_width, self.width - 1
        padding = bits - self.width
        lines = [f"wire [{bits - 1}:0] word;"]
        if padding:
            lines.append(f"wire [{bits - 1}:0] wide = {{{padding}'d0, write_data}};")
        if self.holds:
            lines.append(f"assign read_data = word[{high}:0];")
        else:
            lines += [f"reg fresh;\nreg [{high}:0] kept;", f"assign read_data = fresh ? word[{high}:0] : kept;"]
            lines += ["always @(posedge clk) fresh <= read_enable;", "always @(posedge clk) if (fresh) kept <= read_data;"]
        sources = {"write_data": "wide" if padding else "write_data", "read_data": "word"}
        extra = (self.macro_depth - 1).bit_length() - max((self.depth - 1).bit_length(), 1)
        for column in range(self.columns):
            low = column * self.macro_width
            pins = []
            for pin, signal in self.pins.items():
                if signal in _DATA:
                    signal = f"{sources[signal]}[{low + self.macro_width - 1}:{low}]"
                elif signal in _ADDRESSES and extra > 0:
                    signal = f"{{{extra}'d0, {signal}}}"
                pins.append(f".{pin}({signal})")
            lines.append(f"{self.macro} part{column} (\n    " + ",\n    ".join(pins) + "\n);")
        return "\n".join(lines)


@dataclass
class Memories:
    """Choice of what the memories of a unit are made of.

    Memories without a macro of their size are registers, or latches if ``latches`` is true. ``found`` counts the memories of
    the component that was delivered last by their size (width, depth).
    """

    macros: Sequence[Macro] = ()
    latches: bool = False
    found: Counter[tuple[int, int]] = field(default_factory=Counter)

    def module(self, top: str, sizes: Sequence[tuple[int, int]]) -> str:
        """Return the Verilog of the module that all memories of these sizes in ``top`` are instances of; empty without any."""
        for macro in self.macros:
            if macro.macro == top or macro.macro.startswith(f"{top}__"):
                raise ConfigError(f"macro {macro.macro} has the name of a module of {top}: use one that does not begin so")
        self.found = Counter(sizes)
        if not sizes:
            return ""
        bound = [macro for macro in self.macros if (macro.width, macro.depth) in self.found]
        others = set(self.found) - {(macro.width, macro.depth) for macro in bound}
        latches, clock_gate = (text.format(gate=f"{top}{CLOCK_GATE}") for text in (_LATCHES, _GATE))
        cells, gate = (latches, clock_gate if others else "") if self.latches else (_REGISTERS, "")
        if not bound:
            body = f"    generate\n{cells}    endgenerate\n" if self.latches else cells
            return f"{gate}\n{head(top)}{body}endmodule\n"
        branches = [
            f"if (WIDTH == {macro.width} && DEPTH == {macro.depth}) begin : macros_{macro.width}x{macro.depth}\n"
            f"{_indented(macro.body())}end"
            for macro in bound
        ]
        kind = LATCHES if self.latches else "registers"
        choice = " else ".join([*branches, f"begin : {kind}\n{cells}end"])
        return f"{gate}\n{head(top)}    generate\n{_indented(choice, 8)}    endgenerate\nendmodule\n"

    def listed(self) -> list[dict[str, Any]]:
        """Return the memories for NAME.json: ``width``, ``depth``, ``ports``, ``count`` and ``macro`` (null for registers)."""
        names = {(macro.width, macro.depth): macro.macro for macro in self.macros}
        cells = LATCHES if self.latches else None
        return [
            {"width": width, "depth": depth, "ports": "1r1w", "count": count, "macro": names.get((width, depth), cells)}
            for (width, depth), count in sorted(self.found.items())
        ]

    def unused(self, manifests: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return a line for each macro whose size no memory in manifests has.

        Raises ConfigError if all are such, unless the memories are latches.
        """
        sizes = {(one["width"], one["depth"]) for manifest in manifests for one in manifest["memories"]}
        left = [macro for macro in self.macros if (macro.width, macro.depth) not in sizes]
        lines = [f"no memory is {one.width} x {one.depth}: macro {one.macro} of --memories is not used" for one in left]
        if left and len(left) == len(self.macros) and not self.latches:
            there = ", ".join(f"{width} x {depth}" for width, depth in sorted(sizes)) or "none"
            raise ConfigError(
                f"no macro of --memories has the size of a memory ({there}): correct width and depth, or leave --memories out"
            )
        return lines


def read_memories(path: Path) -> Memories:
    """Read macros from a TOML file, an array ``memory`` of tables with the parameters of :class:`Macro`; ``latches`` has none.

    Where the file says ``latches = true``, memories without a macro are latches. Raises ConfigError for a file in which a
    parameter is missing or wrong.
    """
    if str(path) == LATCHES:
        return Memories(latches=True)
    try:
        tables = tomllib.loads(read_text(path))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the memories of {path}: {reason(error)}") from None
    listed, latches = tables.pop("memory", []), tables.pop(LATCHES, False)
    if not isinstance(latches, bool):
        raise ConfigError(f"{path} has latches = {latches!r}: use true or false")
    if tables or not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed) or not (listed or latches):
        raise ConfigError(f"{path} is no file of memories: use tables [[memory]], latches = true, or both")
    macros = [_macro(path, table) for table in listed]
    for size, count in Counter((macro.width, macro.depth) for macro in macros).items():
        if count > 1:
            raise ConfigError(f"{path} has {count} macros for memories of {size[0]} x {size[1]}: leave one")
    return Memories(macros, latches)


def _macro(path: Path, table: Mapping[str, Any]) -> Macro:
    known = _KEYS | _OPTIONAL
    for key, kind in known.items():
        given = table.get(key)
        if type(given) is not kind and not (key in _OPTIONAL and key not in table):
            raise ConfigError(f"a memory of {path} has {key} = {given!r}: use {_KINDS[kind]}")
    if set(table) - set(known) or not all(isinstance(signal, str) for signal in table["pins"].values()):
        raise ConfigError(f"a memory of {path} has unknown keys or pins that are no texts: use {', '.join(known)}")
    liberty = path.parent / table["liberty"] if "liberty" in table else None
    return Macro(**{**table, "liberty": liberty})


def _constant(text: str) -> bool:
    """Return whether a text is a constant of Verilog with its size, which it fits."""
    found = _CONSTANT.fullmatch(text)
    if found is None:
        return False
    number = next(int(digits, base) for digits, base in zip(found.groups()[1:], (2, 10, 16), strict=True) if digits)
    return number.bit_length() <= int(found[1])


_KINDS = {int: "a whole number", str: "a text", dict: "a table of texts", bool: "true or false"}


def _indented(text: str, spaces: int = 4) -> str:
    return "".join(f"{' ' * spaces}{line}" if line.strip() else line for line in f"{text}\n".splitlines(keepends=True))
