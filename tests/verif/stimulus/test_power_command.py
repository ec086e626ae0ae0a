"""``cdu power`` from the command line."""

import json

import pytest
from cdu_cli.main import app
from cdu_synth.library import pdk
from cdu_tools.errors import MissingToolError
from typer.testing import CliRunner


def test_a_block_is_measured(tmp_path):
    try:
        pdk.find("nangate45")
    except MissingToolError as error:
        pytest.skip(str(error))
    words = ["power", "--block", "inverse_shift_quantizer", "--steps", "2", "--limit", "64", "--random", "--yosys", "pyosys"]
    result = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "out"), "--json", str(tmp_path / "power.json")])
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / "power.json").read_text())
    assert content == json.loads((tmp_path / "out" / "power.json").read_text())
    assert [run["data"] for run in content["runs"]] == ["activations", "random"]
    for run in content["runs"]:
        assert run["complete"]
        assert run["words_checked"] == run["values"] // 8
        parts = run["milliwatts_by_row"].values()
        assert sum(part["all"] for part in parts) == pytest.approx(run["milliwatts"])
        assert all(part > 0 for part in run["milliwatts_by_cause"].values())
    table = (tmp_path / "out" / "power.md").read_text()
    assert f"{content['runs'][0]['picojoules_per_value']:.3g}" in table
    assert (tmp_path / "out" / "inverse_shift_quantizer_gates.v").read_text().startswith("module inverse_shift_quantizer(")
