"""Netlists in the cache: made once, and units by the rows that their cells belong to."""

import json

import pytest
from cdu_synth.area import flow
from cdu_synth.area.flow import Cost
from cdu_synth.area.kept_netlist import kept_netlist
from cdu_tools import yosys

COST = Cost(1.0, 1.0, 0, 0, 1, 1.0, "", "", 0, None, "balanced")


@pytest.mark.parametrize(("top", "by_row"), [("cdu_compressor", True), ("cdu_array", True), ("cdu_dct", False)])
def test_units_are_mapped_by_rows(top, by_row, nangate45, tmp_path, monkeypatch):
    calls = []

    def synthesise(verilog, name, library, clock_ns, build, folder, recipes, *, by_row):
        calls.append((name, by_row))
        (folder / "balanced.json").write_text(json.dumps({"modules": {name: {}}}))
        return {"balanced": COST}

    monkeypatch.setattr(flow, "synthesise", synthesise)
    monkeypatch.setenv("CDU_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        design, cost = kept_netlist("module", top, nangate45, 1.6, "balanced", yosys.engine(yosys.GENERATOR))
        assert (design, cost) == ({"modules": {top: {}}}, COST)
    assert calls == [(top, by_row)]
