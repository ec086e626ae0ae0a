"""Static timing of a mapped netlist with OpenSTA, under the assumptions of :mod:`cdu_synth.area.timing`."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as FilePath

from cdu_tools.errors import UserError, by_system, not_installed
from cdu_tools.near_names import unknown

from cdu_synth.area.timing import Net, Netlist, Path
from cdu_synth.library.liberty import Library, contents

#: Choose OpenSTA if it is installed, else the built-in timing.
AUTO = "auto"
#: Choose OpenSTA.
OPENSTA = "opensta"
#: Period from which slacks are computed; it does not change any delay.
_PERIOD_NS = 100.0
_TCL = """\
{libraries}
read_verilog netlist.v
link_design netlist
set_cmd_units -time ns
{wires}
create_clock -name clock -period {period:g} {clock}
set_input_delay 0 -clock clock [all_inputs]
set_output_delay 0 -clock clock [all_outputs]
report_checks -path_delay max -digits 6
"""
#: Attributes from which OpenSTA would estimate wires statistically.
_WIRES = re.compile(r"default_wire_load\w*\s*:[^;]*;")
_STEP = re.compile(r" (?:c(\d+)/\w+|n(\d+)) \(")


class OpenStaError(RuntimeError):
    """Failed run of OpenSTA; the message holds the end of its output."""


@dataclass(frozen=True)
class OpenSta:
    """An installed OpenSTA: its path and version."""

    program: str
    version: str

    def slowest(self, netlist: Netlist, library: Library, directory: FilePath, wires: str | None = None) -> Path | None:
        """Return the slowest path of a netlist, or None if it has none.

        Parameters
        ----------
        netlist, library
            The netlist, and the library that it was mapped onto.
        directory
            Existing folder for intermediate files: ``netlist.v``, ``sta.tcl``, ``sta0.lib`` ...
        wires
            Wires as text in SPEF; default: none.

        Raises
        ------
        OpenStaError
            if OpenSTA does not accept the files.
        """
        for index, path in enumerate(library.files):
            (directory / f"sta{index}.lib").write_text(_WIRES.sub("", contents(path)), encoding="utf-8")
        (directory / "netlist.v").write_text("\n".join(verilog(netlist)), encoding="utf-8")
        if wires is not None:
            (directory / "wires.spef").write_text(wires, encoding="utf-8")
        clocks = _clocks(netlist, library)
        script = _TCL.format(
            libraries="\n".join(f"read_liberty sta{index}.lib" for index in range(len(library.files))),
            wires="" if wires is None else "read_spef wires.spef",
            period=_PERIOD_NS,
            clock=f"[get_ports {{{' '.join(f'n{net}' for net in clocks)}}}]" if clocks else "",
        )
        (directory / "sta.tcl").write_text(script, encoding="utf-8")
        run = subprocess.run([self.program, "-exit", "sta.tcl"], cwd=directory, capture_output=True, text=True, check=False)
        # OpenSTA continues after errors and exits with 0.
        if run.returncode or re.search(r"^Error", run.stdout + run.stderr, re.MULTILINE):
            raise OpenStaError(f"OpenSTA {self.version} failed: {(run.stdout + run.stderr).strip()[-600:]}")
        slack = re.search(r"(-?[\d.]+)\s+slack", run.stdout)
        if slack is None:
            return None
        return _path(netlist, library, _PERIOD_NS - float(slack[1]), run.stdout)


def find() -> OpenSta:
    """Return the OpenSTA on the PATH.

    Raises MissingToolError if there is none.
    """
    program = shutil.which("sta")
    if program is None:
        raise not_installed("OpenSTA", by_system("opensta"))
    version = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stdout.strip()
    return OpenSta(program, version or "unknown")


def choose(name: str) -> OpenSta | None:
    """Return the timing that ``--sta`` selects: ``opensta``, ``builtin`` (None), or ``auto`` (OpenSTA if it is installed).

    Raises MissingToolError if OpenSTA is asked for and is not installed, UserError for another name.
    """
    if name not in (AUTO, OPENSTA, "builtin"):
        raise UserError(unknown("--sta", name, (AUTO, OPENSTA, "builtin")))
    if name == "builtin" or (name == AUTO and shutil.which("sta") is None):
        return None
    return find()


def verilog(netlist: Netlist) -> Iterator[str]:
    """Yield a netlist in Verilog with plain names, c7 for cell 7 and n9 for net 9, which any parser accepts."""
    inputs = dict.fromkeys(net for net in netlist.inputs if isinstance(net, int))
    outputs = dict.fromkeys(net for net in netlist.outputs if isinstance(net, int) and net not in inputs)
    yield f"module netlist ({', '.join(f'n{net}' for net in (*inputs, *outputs))});"
    yield from (f"  input n{net};" for net in inputs)
    yield from (f"  output n{net};" for net in outputs)
    nets = {net for _, pins in netlist.cells for net in pins.values() if isinstance(net, int)}
    yield from (f"  wire n{net};" for net in sorted(nets - inputs.keys() - outputs.keys()))
    for number, (kind, pins) in enumerate(netlist.cells):
        ends = (f".{pin}({_end(net)})" for pin, net in pins.items() if net not in ("x", "z"))
        yield f"  {kind} c{number} ({', '.join(ends)});"
    yield "endmodule\n"


def _end(net: Net) -> str:
    return f"n{net}" if isinstance(net, int) else f"1'b{net}"


def _clocks(netlist: Netlist, library: Library) -> list[Net]:
    """Return the ports at clock pins."""
    pins = {net for kind, ends in netlist.cells for setup in library.cells[kind].setups if (net := ends.get(setup.source))}
    return [net for net in dict.fromkeys(netlist.inputs) if net in pins]


def _path(netlist: Netlist, library: Library, delay_ns: float, report: str) -> Path:
    """Return the path that a report of OpenSTA lists, from its launching clock edge or input to its end."""
    listed = report.partition("data arrival time")[0].partition("Path Type")[2]
    points = [(int(cell) if cell else None, int(net) if net else None) for cell, net in _STEP.findall(listed)]
    cells = list(dict.fromkeys(cell for cell, _ in points if cell is not None))
    (_, first_net), (last_cell, last_net) = points[0], points[-1]
    if last_cell is not None:
        # The path ends at the last cell; a loop through one flip-flop also begins there.
        starts_there = points[0][0] == last_cell
        cells = cells if starts_there else cells[:-1]
        state = netlist.state(last_cell, library)
        last_net = state if isinstance(state, int) else None
    start = first_net if first_net is not None else netlist.state(cells[0], library)
    return Path(
        delay_ns,
        "" if start is None else netlist.name(start),
        "" if last_net is None else netlist.name(last_net),
        tuple(cells),
    )
