"""Mutants of a generated file, made with Yosys: one netlist that holds them all, and the search for equivalent ones."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdu.delivery.unread_bits import UNREAD
from cdu_tools import yosys

from cdu_verif.formal.device import Device
from cdu_verif.mutation import miter

#: Argument of the simulation that selects a mutant; 0, or none, is the unchanged design.
ARGUMENT = "mutant"
_SELECT = "mutant_select"
_BASE, _LIST = "base.il", "mutants.txt"
#: Options of a fault in a cell that initialises a memory, or in unread bits.
_NO_PLACE = re.compile(rf"\$meminit|-wire (\S+\.)?{UNREAD}")
#: Place of a fault in a clock.
_CLOCK = " CLK["


@dataclass(frozen=True)
class Mutant:
    """One fault: a bit of a cell's port that is constant or inverted (always, or when another bit is high)."""

    number: int  #: from 1
    options: str  #: of Yosys' command ``mutate``

    @property
    def mode(self) -> str:
        """Return the kind: ``inv``, ``const0``, ``const1``, ``cnot0``, ``cnot1`` or ``none``."""
        return self._option("mode")

    @property
    def place(self) -> str:
        """Return cell, port and bit."""
        return f"{self._option('cell')} {self._option('port').lstrip(chr(92))}[{self._option('portbit')}]"

    @property
    def line(self) -> str:
        """Return the innermost place in the Verilog file, as ``file:line.column-line.column``."""
        places: list[str] = re.findall(r"-src (\S+)", self.options)
        return places[-1] if places else ""

    def _option(self, name: str) -> str:
        found = re.search(rf"-{name} (\S+)", self.options)
        return found[1] if found else ""


def choose(verilog: Path, top: str, folder: Path, count: int, seed: int) -> list[Mutant]:
    """Return up to ``count`` mutants of a file's top, spread over cells, bits and lines of the source by Yosys.

    Writes the flat netlist from which they are made to ``folder``.
    """
    (folder / verilog.name).write_text(verilog.read_text("utf-8"), encoding="utf-8")
    script = [
        f"read_verilog {verilog.name}",
        f"hierarchy -top {top}",
        *("proc", "flatten", "opt_clean"),
        f"write_rtlil {_BASE}",
        f"mutate -list {2 * count} -seed {seed} -o {_LIST}",
    ]
    yosys.run("\n".join(script), folder)
    found = [line.removeprefix("mutate ") for line in (folder / _LIST).read_text("utf-8").splitlines()]
    # The initial content of a memory is no gate, and Yosys reads only constants there; mutants in unread bits are equivalent.
    places = [one for one in found if not _NO_PLACE.search(one)]
    taken = sorted(random.Random(seed).sample(range(len(places)), min(count, len(places))))
    return [Mutant(number, places[place]) for number, place in enumerate(taken, 1)]


def selectable(mutants: Sequence[Mutant], ports: Sequence[dict[str, Any]], top: str, folder: Path) -> Path:
    """Return a Verilog file with the same top and ports in which the simulator's ``+mutant=NUMBER`` selects a mutant."""
    width = (len(mutants) + 1).bit_length()
    commands = [f"mutate -ctrl {_SELECT} {width} {mutant.number} {mutant.options}" for mutant in mutants]
    script = [f"read_rtlil {_BASE}", *commands, f"rename {top} {top}_mutated", "opt_clean", "write_verilog -noattr mutated.v"]
    yosys.run("\n".join(script), folder)
    file = folder / f"{top}.mutants.v"
    file.write_text((folder / "mutated.v").read_text("utf-8") + _wrapper(top, ports, width), encoding="utf-8")
    return file


def verilog(mutant: Mutant, folder: Path) -> str:
    """Return the flat netlist with a fault."""
    place = _own_folder(folder, f"faulty_{mutant.number}")
    yosys.run("\n".join([f"read_rtlil {_BASE}", f"mutate {mutant.options}", "write_verilog -noattr faulty.v"]), place)
    return (place / "faulty.v").read_text("utf-8")


def equivalent(mutant: Mutant, device: Device, promised: str, folder: Path) -> bool:
    """Return whether a mutant is proven equivalent for inputs that keep their promises (:func:`miter.equal`).

    A mutant of a clock never is, because the comparison has one clock for both.
    """
    if _CLOCK in mutant.place:
        return False
    place = _own_folder(folder, f"miter_{mutant.number}")
    gold = [f"read_rtlil {_BASE}"]
    return miter.equal(device, promised, gold, [*gold, f"mutate {mutant.options}"], place)


def _own_folder(folder: Path, name: str) -> Path:
    """Return a folder for one mutant's files, with the flat netlist."""
    place = folder / name
    place.mkdir(exist_ok=True)
    (place / _BASE).write_text((folder / _BASE).read_text("utf-8"), encoding="utf-8")
    return place


def _wrapper(top: str, ports: Sequence[dict[str, Any]], width: int) -> str:
    """Return the top, which reads the selected mutant and connects all ports."""
    declared = ",\n".join(f"  {port['direction']} wire [{port['width'] - 1}:0] {port['name']}" for port in ports)
    connected = "".join(f"    .{port['name']}({port['name']}),\n" for port in ports)
    return f"""
module {top} (
{declared}
);
  integer chosen;
  reg [{width - 1}:0] select;
  initial begin
    chosen = 0;
    if (!$value$plusargs("{ARGUMENT}=%d", chosen)) chosen = 0;
    select = chosen[{width - 1}:0];
  end
  {top}_mutated mutated (
{connected}    .{_SELECT}(select)
  );
endmodule
"""
