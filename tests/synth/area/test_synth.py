"""`cdu generate`, `cdu synth` and `cdu list` from the command line."""

import gzip
import hashlib
import json
from pathlib import Path

import pytest
import typer
from cdu_cli import generate, inventory, synth
from typer.testing import CliRunner


@pytest.fixture
def command():
    app = typer.Typer(pretty_exceptions_enable=False)
    for module in (generate, synth, inventory):
        module.register(app)

    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


def test_generate_twice_is_the_same(command, tmp_path):
    for folder in ("a", "b"):
        result = command("generate", "--block", "shift_quantizer", "--set", "rounding=trunc", "-o", tmp_path / folder)
        assert result.exit_code == 0, result.output
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == [
        "shift_quantizer.core",
        "shift_quantizer.json",
        "shift_quantizer.sdc",
        "shift_quantizer.v",
        "shift_quantizer.vlt",
        "shift_quantizer_equiv.ys",
        "shift_quantizer_librelane.yaml",
        "shift_quantizer_synth.tcl",
    ]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    content = json.loads((tmp_path / "a" / "shift_quantizer.json").read_text())
    assert content["config"]["rounding"] == "trunc"


def test_synth_refuses_macros_that_no_block_has_a_memory_for(command, tmp_path, nangate45):
    file = Path(__file__).parents[3] / "examples" / "memories" / "any.toml"
    result = command("synth", "--block", "inverse_shift_quantizer", "--memories", file, "-o", tmp_path / "out")
    assert "no macro of --memories has the size of a memory (none)" in str(result.exception)


def test_synth_reports_a_block(command, tmp_path, nangate45):
    result = command(
        "synth", "--block", "inverse_shift_quantizer", "--clock-ns", "1", "--json", tmp_path / "x.json", "-o", tmp_path / "out"
    )
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / "out" / "report.json").read_text())
    assert json.loads((tmp_path / "x.json").read_text()) == content
    assert content["pdk"] == "nangate45"
    file = nangate45.files[0]
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    assert content["library_sha256"] == hashlib.sha256(text).hexdigest()
    assert list(content["blocks"]) == ["inverse_shift_quantizer"]
    cost = content["blocks"]["inverse_shift_quantizer"]
    assert cost["critical_path_ns"] <= 1
    assert cost["mhz"] == pytest.approx(1e3 / cost["critical_path_ns"], abs=0.1)
    assert cost["leakage_uw"] > 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["area.png", "report.json", "report.md"]


def test_what_a_block_was_built_with_is_reported(command, tmp_path, nangate45):
    """A distributor has two CDUs or more, and does not say that it has one."""
    options = ["--set", "modes=brc", "--clock-ns", "2", "--recipe", "balanced", "--sta", "builtin", "-o", tmp_path]
    result = command("synth", "--block", "distributor", "--block", "shift_quantizer", *options)
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["config"]["cdus"] == 1
    assert content["built_with"] == {"distributor": {"cdus": 2}}
    page = (tmp_path / "report.md").read_text()
    assert 'distributor was built with: `{"cdus": 2}`' in page
    assert "Cost of configuration tiny_modes_brc in nangate45" in page


def test_several_periods_draw_area_against_period(command, tmp_path, nangate45):
    arguments = ["--block", "brc_encoder", "--set", "modes=brc", "--recipe", "balanced", "--sta", "builtin"]
    result = command("synth", *arguments, "--clock-ns", "2", "--clock-ns", "0.5:0.6:0.1", "-o", tmp_path)
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / "report.json").read_text())
    points = content["sweep"]["brc_encoder"]
    assert [point["clock_ns"] for point in points] == [2, 0.6, 0.5]
    assert content["clock_ns"] == 2
    assert content["blocks"]["brc_encoder"]["ge"] == points[0]["ge"]
    assert content["timing"]["tool"] == "builtin"
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "report.md").read_text()
    assert page.count("| brc_encoder |") == 4
    assert "static timing: built-in" in page


def test_list_names_what_is_here(command, tmp_path):
    result = command("list", "--all", "--json", tmp_path / "here.json")
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / "here.json").read_text())
    assert "dct" in [row["name"] for row in content["blocks"]]
    assert "tiny" in [row["name"] for row in content["configurations"]]
    assert "jpeg-act" in [row["name"] for row in content["codecs"]]
    for rows in content.values():
        assert all(row["name"] in result.output for row in rows)
        assert all(row["add"] for row in rows if not row.get("here", True))
