"""Netlists that are kept in the user's cache, for whoever measures one again and again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cdu import yosys
from cdu_spec.cache import entry

from cdu_synth import flow
from cdu_synth.flow import Cost
from cdu_synth.liberty import Library

_COST = "cost.json"


def kept_netlist(
    verilog: str, top: str, library: Library, clock_ns: float, recipe: str, build: yosys.Engine
) -> tuple[dict[str, Any], Cost]:
    """Yosys' JSON of a synthesised module and what it costs (:func:`cdu_synth.flow.synthesise`); made when it is not kept."""

    def make(folder: Path) -> None:
        cost = flow.synthesise(verilog, top, library, clock_ns, build, folder, [recipe])[recipe]
        for path in folder.iterdir():
            if path.name != f"{recipe}.json":
                path.unlink()
        (folder / _COST).write_text(json.dumps(asdict(cost)), encoding="utf-8")

    sources = Path(flow.__file__).read_text(encoding="utf-8")
    folder = entry("netlist", [verilog, top, library.sha256, clock_ns, recipe, build.name, build.version, sources], make)
    cost = Cost(**json.loads((folder / _COST).read_text(encoding="utf-8")))
    return json.loads((folder / f"{recipe}.json").read_text(encoding="utf-8")), cost
