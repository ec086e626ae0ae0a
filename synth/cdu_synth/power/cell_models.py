"""Verilog models of library cells, for simulating netlists.

Yosys makes them from the functions and flip-flops of the Liberty files; those of clock gates, which Liberty describes by
tables, are made here. They have no delays and no user-defined primitives: expressions and ``always`` blocks, which every
simulator takes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from cdu_tools import yosys

from cdu_synth.library.liberty import Cell, LibertyError, Library, contents

_MODELS = "models.v"
_CLOCK_GATE = """
module {name}({ports});
{inputs}  output {gate.output};
  reg pass;
  always @* if (!{gate.clock}) pass = {enabled};
  assign {gate.output} = {gate.clock} & pass;
endmodule
"""


def cell_models(library: Library, kinds: Iterable[str], build: yosys.Engine | None = None) -> str:
    """Verilog modules of some cells of a library, with the cells' names and pins.

    Raises LibertyError for cells that the library does not have, YosysError for a library that Yosys cannot read.
    """
    wanted = sorted(set(kinds))
    if missing := [kind for kind in wanted if kind not in library.cells]:
        raise LibertyError(f"library {library.name} has no cells {', '.join(missing)}: use the one that they were mapped onto")
    with tempfile.TemporaryDirectory(prefix="cdu-cells-") as folder:
        directory = Path(folder)
        script = []
        for index, path in enumerate(library.files):
            (directory / f"cells{index}.lib").write_text(contents(path), encoding="utf-8")
            script.append(f"read_liberty -ignore_miss_func -ignore_miss_dir -ignore_miss_data_latch cells{index}.lib")
        made = [kind for kind in wanted if library.cells[kind].clock_gate is None]
        script += ["select -none", *(f"select -add {kind}" for kind in made), f"write_verilog -noattr -selected {_MODELS}"]
        yosys.run("\n".join(script) + "\n", directory, build or yosys.engine())
        models = (directory / _MODELS).read_text(encoding="utf-8")
    return models + "".join(_clock_gate(library.cells[kind]) for kind in wanted if library.cells[kind].clock_gate)


def _clock_gate(cell: Cell) -> str:
    """The latch of a clock gate is open while the clock is low."""
    gate = cell.clock_gate
    assert gate is not None
    inputs = "".join(f"  input {pin};\n" for pin in cell.capacitances)
    enabled = f"{gate.enable} | {gate.test}" if gate.test else gate.enable
    return _CLOCK_GATE.format(
        name=cell.name, ports=", ".join((*cell.capacitances, gate.output)), inputs=inputs, enabled=enabled, gate=gate
    )
