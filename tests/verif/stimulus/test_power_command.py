"""``cdu power`` from the command line."""

import json

import pytest
from cdu_cli.main import app
from cdu_synth.library import pdk
from cdu_tools.errors import MissingToolError
from typer.testing import CliRunner


@pytest.fixture(autouse=True)
def _library():
    try:
        pdk.find("nangate45")
    except MissingToolError as error:
        pytest.skip(str(error))


def test_gmc_is_measured_beside_zvc(tmp_path):
    """A coder's block is played the jobs of its codec and no others; what both codecs pass is played those of both."""
    blocks = ["zvc_encoder", "gmc_encoder", "inverse_shift_quantizer"]
    words = ["power", *(word for block in blocks for word in ("--block", block)), "--codec", "jpeg-act", "--codec", "jpeg-gmc"]
    words += ["--set", "coders=zvc,gmc", "--steps", "2", "--limit", "64", "--yosys", "pyosys"]
    result = CliRunner().invoke(app, [*words, "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    runs = json.loads((tmp_path / "power.json").read_text())["runs"]
    played = [("zvc_encoder", "jpeg-act"), ("gmc_encoder", "jpeg-gmc")]
    played += [("inverse_shift_quantizer", "jpeg-act"), ("inverse_shift_quantizer", "jpeg-gmc")]
    assert [(run["block"], run["codec"]) for run in runs] == played
    assert len({run["values"] for run in runs}) == 1
    # The same blocks are fewer bytes: fewer words leave GMC's encoder.
    assert runs[0]["words_checked"] > runs[1]["words_checked"] >= runs[1]["values"] // 64
    assert all(run["picojoules_per_value"] > 0 for run in runs)


def test_a_block_is_measured(tmp_path):
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
    assert (tmp_path / "out" / "inverse_shift_quantizer_gates.v").read_text().startswith("module cdu_inverse_shift_quantizer(")
