"""Cost of generated Verilog on an FPGA: Yosys, then nextpnr packs, places and routes it, out of context.

Out of context means without pads: the module is placed as a part of a larger design, so that its wide ports need no pins. Its
inputs are not driven and its outputs not loaded, and only paths from register to register are timed, with an ideal clock.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdu_synth.area.flow import repeated_modules
from cdu_tools import yosys

from cdu_fpga import nextpnr
from cdu_fpga.fpga_devices import Family, Target
from cdu_fpga.fpga_path import CriticalPath, critical_path

#: Target frequency of nextpnr in MHz. The result does not depend on it: placer and router only compare the delays of paths
#: with each other.
GOAL_MHZ = 100.0

_NETLIST = "netlist.json"
# Names that Yosys made up are hidden before the cells are mapped, because the mapping fails on them otherwise.
_SYNTHESISE = """\
read_verilog design.v
hierarchy -check -top {top}
proc
rename -hide w:$*
opt_clean -purge
{keep}{synthesis} -top {top}
setattr -mod -unset keep_hierarchy *
flatten
opt_clean
delete */t:$scopeinfo
write_json {netlist}
"""


@dataclass(frozen=True)
class FpgaPlacement:
    """Resources and clock frequency of a module on an FPGA.

    Parameters
    ----------
    device, speed, seed
        The device tried last: the first one that the module fits, or the largest; its speed grade; the seed.
    used, available
        Numbers used by resource of the family, and numbers that the device has.
    problem
        Reason why the module was not placed and routed; empty if it was.
    mhz
        Highest clock frequency in MHz after routing; 0 if there is none or no path between registers.
    path
        The slowest path; None if there is none.
    """

    device: str
    speed: int
    seed: int
    used: dict[str, int]
    available: dict[str, int]
    problem: str = ""
    mhz: float = 0.0
    path: CriticalPath | None = None


def place_and_route(
    verilog: str,
    top: str,
    target: Target,
    seed: int,
    build: yosys.Engine | None = None,
    directory: Path | None = None,
) -> FpgaPlacement:
    """Place and route the module ``top`` of a Verilog text on the first device of ``target`` that it fits.

    Parameters
    ----------
    verilog
        Verilog-2005 text.
    top
        Name of the module. A large module with several instances is mapped once, as for a cell library.
    target
        Devices and speed grade.
    seed
        Seed of the placement; the frequency varies with it by some percent.
    build
        The Yosys to use; default: the pinned one.
    directory
        Existing folder in which netlist and logs are kept; default: a temporary one.

    Raises
    ------
    yosys.YosysError, nextpnr.NextpnrError
        if a program does not accept the design; a design that is too large is no error.
    MissingToolError
        if a program is not installed.
    """
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="cdu-fpga-") as folder:
            return place_and_route(verilog, top, target, seed, build, Path(folder))
    nextpnr.version(target.family.tool)
    (directory / "design.v").write_text(verilog, encoding="utf-8")
    keep = "".join(f"setattr -mod -set keep_hierarchy 1 {name}\n" for name in repeated_modules(verilog))
    script = _SYNTHESISE.format(top=top, keep=keep, synthesis=target.family.synthesis, netlist=_NETLIST)
    yosys.run(script, directory, build or yosys.engine(yosys.GENERATOR))
    for device in target.devices:
        placement = _on_device(verilog, top, target, device, seed, directory)
        if not placement.problem:
            break
    return placement


def _on_device(verilog: str, top: str, target: Target, device: str, seed: int, directory: Path) -> FpgaPlacement:
    family = target.family
    options = [family.devices[device], "--package", family.package, "--speed", str(target.speed), "--seed", str(seed)]
    options += ["--json", _NETLIST, "--out-of-context", "--freq", f"{GOAL_MHZ:g}", "--timing-allow-fail"]
    packed = nextpnr.run(family.tool, [*options, "--pack-only"], directory)
    used, available = resources(family, packed)
    missing = [f"{used[name]:,} {name}, has {available[name]:,}" for name in used if used[name] > available[name]]
    if missing:
        problem = f"does not fit {device}: needs {' and '.join(missing)}"
        return FpgaPlacement(device, target.speed, seed, used, available, problem)
    try:
        report = nextpnr.run(family.tool, options, directory)
    except nextpnr.DoesNotFitError as error:
        return FpgaPlacement(device, target.speed, seed, used, available, f"does not fit {device}: {error}")
    cells = json.loads((directory / _NETLIST).read_text(encoding="utf-8"))["modules"][top]["cells"]
    mhz = min((clock["achieved"] for clock in report["fmax"].values()), default=0.0)
    return FpgaPlacement(device, target.speed, seed, used, available, "", round(mhz, 2), critical_path(report, cells, verilog))


def resources(family: Family, report: dict[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    """Return used and available resources from a report of nextpnr, by the family's names."""
    cells = report["utilization"]
    used = {
        name: sum(weight * cells[cell]["used"] for cell, weight in parts.items()) for name, parts in family.resources.items()
    }
    available = {}
    for name, parts in family.resources.items():
        cell, weight = next(iter(parts.items()))
        available[name] = weight * cells[cell]["available"]
    return used, available
