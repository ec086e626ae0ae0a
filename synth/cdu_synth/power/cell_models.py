"""Verilog models of library cells, for simulating netlists.

Yosys makes them from the functions and flip-flops of the Liberty files. They have no delays and no user-defined primitives:
expressions and ``always`` blocks, which every simulator takes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from cdu_tools import yosys

from cdu_synth.library.liberty import LibertyError, Library, contents

_MODELS = "models.v"


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
        script += ["select -none", *(f"select -add {kind}" for kind in wanted), f"write_verilog -noattr -selected {_MODELS}"]
        yosys.run("\n".join(script) + "\n", directory, build or yosys.engine())
        return (directory / _MODELS).read_text(encoding="utf-8")
