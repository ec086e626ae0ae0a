"""Comparison of the design and a mutant side by side, for all inputs that keep their promises."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cdu_tools import yosys

from cdu_verif.formal import binding, solver
from cdu_verif.formal.device import HARNESS, Device, Stream
from cdu_verif.formal.stream_rules import checkers

GOLD, GATE = "gold", "gate"
_FILE = "miter.aig"
#: Seconds of the search, and of all steps before it; a mutant without a verdict by then stays a mutant.
_PATIENCE, _LONGEST = 300, 600
#: Yosys commands from a module with assertions to a file that ABC reads. Registers without a reset value begin with 0.
_TO_AIGER = (
    f"hierarchy -top {HARNESS}",
    "proc -norom",
    f"prep -flatten -top {HARNESS}",
    *("memory_map", "opt -fast", "async2sync", "chformal -cover -remove"),
    *("setundef -undriven -anyseq", "setundef -init -zero", "setundef -zero"),
    # Mapping makes undefined bits of its own, for example for selections beyond the end of a word.
    *("techmap", "simplemap", "opt -fast", "dffunmap", "setundef -zero", "aigmap", "opt_clean"),
    f"write_aiger -I -B -zinit -no-startoffset {_FILE}",
)
#: Registers that are always equal are merged, then property-directed reachability; the last command is for designs without
#: any.
_SEARCH = f"read_aiger {_FILE}; fold; strash; scorr; dc2; scorr; orpos; pdr -T {_PATIENCE}; iprove"
_PROVEN = ("Property proved", "UNSATISFIABLE")


def equal(device: Device, promised: str, gold: Sequence[str], gate: Sequence[str], folder: Path) -> bool:
    """Return whether it is proven that outputs are equal in every state that a reset leads to.

    Both have the same inputs, which keep the stream rules; payloads are compared while they are valid.

    Parameters
    ----------
    device
        Device whose ports both have.
    promised
        Assumptions about the inputs beyond the stream rules, in Verilog.
    gold, gate
        Yosys commands that read the design and the mutant, each as a flat top.
    folder
        Folder with the files of these commands.
    """
    (folder / "harness.sv").write_text(_harness(device, promised), encoding="utf-8")
    modules = [source.name for source in binding.sources()]
    for source in binding.sources():
        (folder / source.name).write_text(source.read_text("utf-8"), encoding="utf-8")
    script = [
        *(*gold, f"rename -top {GOLD}", f"design -stash {GOLD}"),
        *(*gate, f"rename -top {GATE}", f"design -stash {GATE}"),
        f"read_verilog -formal -sv -defer {' '.join(modules)}",
        "read_verilog -formal -sv harness.sv",
        *(f"design -copy-from {name} -as {name} {name}" for name in (GOLD, GATE)),
        *_TO_AIGER,
    ]
    yosys.run("\n".join(script), folder)
    command = [solver.find_programs()["abc"], "-c", _SEARCH]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=_LONGEST)
    except subprocess.TimeoutExpired:
        return False
    return any(word in done.stdout for word in _PROVEN)


def _harness(device: Device, promised: str) -> str:
    """Return the module with both; the mutant's outputs have the names of their ports with the prefix ``gate_``."""
    sends = [port for port in device.ports if port["direction"] == "output" and port["width"]]
    takes = [port for port in device.ports if port["direction"] == "input" and port["width"] and port["name"] != "clk"]
    lines = [
        f"module {HARNESS} (",
        ",\n".join(["  input clk", *(f"  input [{port['width'] - 1}:0] {port['name']}" for port in takes)]),
        ");",
        "  reg started = 0;",
        "  always @(posedge clk) started <= 1;",
        "  always @* if (!started) assume (rst);",
        *(f"  wire [{port['width'] - 1}:0] {port['name']}, {GATE}_{port['name']};" for port in sends),
    ]
    for name, prefix in ((GOLD, ""), (GATE, f"{GATE}_")):
        inputs = ", ".join(f".{port['name']}({port['name']})" for port in takes)
        outputs = ", ".join(f".{port['name']}({prefix}{port['name']})" for port in sends)
        lines.append(f"  {name} {name} (.clk(clk), {inputs}, {outputs});")
    lines += [checkers(device, assert_outputs=False), promised]
    lines += [_equality(port["name"], device.streams) for port in sends]
    return "\n".join([*lines, "endmodule", ""])


def _equality(port: str, streams: Sequence[Stream]) -> str:
    """Return the assertion that an output is equal, or for a payload, equal while it is valid."""
    valid = [stream.signal("valid") for stream in streams if port in re.findall(r"\w+", stream.signals.get("payload", ""))]
    looked_at = " & ".join(["started", *valid])
    return f"  always @* if ({looked_at}) assert ({port} == {GATE}_{port});"
