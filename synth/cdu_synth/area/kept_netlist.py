"""Netlists kept in the user's cache, for repeated measurements."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cdu.delivery.verilog import top_name
from cdu_tools import yosys
from cdu_tools.cache import entry
from cdu_tools.sources import sources_sha256

from cdu_synth.area import breakdown, flow
from cdu_synth.area.breakdown import Share
from cdu_synth.area.flow import Cost
from cdu_synth.library.liberty import Library

_COST = "cost.json"


def kept_netlist(
    verilog: str, top: str, library: Library, clock_ns: float, recipe: str, build: yosys.Engine
) -> tuple[dict[str, Any], Cost]:
    """Return Yosys' JSON of a module and its cost (:func:`~cdu_synth.area.flow.synthesise`), from the cache if it is there.

    The cost has no slow paths. Units are mapped by rows (:mod:`cdu_synth.area.breakdown`).
    """
    by_row = top in map(top_name, breakdown.UNITS)

    def make(folder: Path) -> None:
        cost = flow.synthesise(verilog, top, library, clock_ns, build, folder, [recipe], by_row=by_row)[recipe]
        for path in folder.iterdir():
            if path.name != f"{recipe}.json":
                path.unlink()
        (folder / _COST).write_text(json.dumps(asdict(cost)), encoding="utf-8")

    sources = sources_sha256(*flow.SOURCES)
    folder = entry(
        "netlist", [verilog, top, library.sha256, clock_ns, recipe, build.name, build.version, sources, by_row], make
    )
    kept = json.loads((folder / _COST).read_text(encoding="utf-8"))
    cost = Cost(**kept | {"shares": tuple(Share(**one) for one in kept["shares"]), "slow_paths": ()})
    return json.loads((folder / f"{recipe}.json").read_text(encoding="utf-8")), cost
