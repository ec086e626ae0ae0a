"""Constant bits of a Verilog file, which Yosys finds by folding constants through gates and registers."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from cdu_tools import yosys

_SCRIPT = """read_verilog design.v
hierarchy -top {top}
proc
opt -full
flatten
memory_map
opt -full
techmap
opt -full
write_json netlist.json
"""


Bits = set[tuple[str, str, int]]


def held_constant_bits(verilog: str, top: str, file: Path) -> Bits:
    """Return :func:`constant_bits`, from a JSON file if it has those of this Verilog; otherwise it gets them."""
    design = hashlib.sha256(verilog.encode()).hexdigest()
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
        if held["design"] == design:
            return {(module, signal, bit) for module, signal, bit in held["bits"]}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    found = constant_bits(verilog, top)
    file.write_text(json.dumps({"design": design, "bits": sorted(found)}), encoding="utf-8")
    return found


def constant_bits(verilog: str, top: str) -> Bits:
    """Return module (without the name of the top), signal and bit of each bit that is constant from reset on."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "design.v").write_text(verilog, encoding="utf-8")
        yosys.run(_SCRIPT.format(top=top), folder)
        signals = json.loads((folder / "netlist.json").read_text(encoding="utf-8"))["modules"][top]["netnames"]
    found = set()
    for path, signal in signals.items():
        module, _, last = path.rpartition(".")
        # An instance has the last part of its module's name.
        found |= {(module.replace(".", "__"), last, bit) for bit, net in enumerate(signal["bits"]) if net in ("0", "1")}
    return found
