"""``cdu dqt`` as a user sees it."""

import io
import json

import actcodec
import numpy as np
import pytest
import typer
from actcodec.study.activations import Activation, load_activations, save_activations
from cdu_cli import dqt, train
from cdu_dqt import RateBench, TableQuantizer, coefficients
from cdu_spec.dqt_file import read_table
from PIL import Image
from plain_dqt import objective
from typer.testing import CliRunner


def run(command, *arguments):
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    command.register(app)
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def files(tmp_path, maps):
    save_activations(tmp_path / "a.npz", [Activation("a", maps[0]), Activation("b", maps[1])])
    save_activations(tmp_path / "b.npz", [Activation("c", maps[2])])
    return "--input", tmp_path / "a.npz", "--held-out", tmp_path / "b.npz"


def test_a_table_for_shifts(tmp_path, files, maps):
    out = tmp_path / "out"
    arguments = ("--alpha", 0.02, "--kind", "shift", "--rate", "zvc", "--S", 1.0, "--json", tmp_path / "r.json", "-o", out)
    result = run(dqt, *files, *arguments)
    assert result.exit_code == 0, result.output
    results = json.loads((out / "results.json").read_text())
    assert results == json.loads((tmp_path / "r.json").read_text())
    table = read_table(out / "table.json")
    assert list(table) == results["table"]
    assert table[0] == 8
    assert len(set(table)) > 1
    assert all(step & (step - 1) == 0 for step in table)
    found = {one["name"]: one for one in results["found"]}
    assert set(found) == {"search", "sgd", "optsL", "optsH"}
    c = coefficients(maps[:2], 1.0).numpy()
    assert found["search"]["objective"] == pytest.approx(objective(c, table, 0.02, "trunc", "shift", "zvc"), rel=1e-12)
    assert found["search"]["objective"] <= min(one["objective"] for one in found.values())
    # Plot and table show measurements of the other file.
    measured = [one for one in results["measured"] if one["S"] == 1.0]
    assert {one["kind"] for one in measured} == {"div", "shift"}
    assert {one["rounding"] for one in measured} == {"trunc", "half_away"}
    known = next(one for one in measured if (one["name"], one["kind"], one["rounding"]) == ("optH", "div", "half_away"))
    packed = actcodec.codec("jpeg-base", dqt="optH", S=1.0).compress(maps[2])
    assert known["point"]["bytes_per_value"] == packed.nbytes / maps[2].numel()
    assert known["point"] == vars(RateBench(maps[2:], 1.0)(TableQuantizer.usual("div"), "optH"))
    swept = next(one for one in measured if one["alpha"] and one["name"] == "zvc")
    packed = actcodec.codec("jpeg-act", dqt=swept["table"], S=1.0, rounding=swept["rounding"]).compress(maps[2])
    assert swept["point"]["bytes_per_value"] == packed.nbytes / maps[2].numel()
    assert len({one["S"] for one in results["measured"]}) == 6
    report = (out / "report.md").read_text()
    assert f"| search | {found['search']['objective']:.4f} |" in report
    assert "| jpeg-act | optsH |" in report
    with Image.open(io.BytesIO((out / "rate_distortion.png").read_bytes())) as picture:
        assert len({pixel for _, pixel in picture.convert("RGB").getcolors(1 << 20)}) > 10
    trained = run(
        train, "--steps", 1, "--limit", 64, "--seeds", 1, "--codec", "jpeg-act", "--dqt", out / "table.json", "-o", out
    )
    assert trained.exit_code == 0, trained.output


def test_a_table_for_gmc_is_compared_in_jpeg_gmc_alone(tmp_path, files, maps):
    out = tmp_path / "out"
    result = run(dqt, *files, "--alpha", 0.02, "--kind", "shift", "--rate", "gmc", "--rec", 0.25, "-o", out)
    assert result.exit_code == 0, result.output
    results = json.loads((out / "results.json").read_text())
    assert (results["settings"]["rec"], results["settings"]["rounding"]) == (0.25, "trunc")
    found = {one["name"]: one for one in results["found"]}
    assert set(found) == {"search", "optsL", "optsH", "uniform-8", "uniform-16", "uniform-32", "uniform-64"}
    assert found["search"]["objective"] == min(one["objective"] for one in found.values())
    assert {(one["kind"], one["rounding"], one["S"]) for one in results["measured"]} == {("shift", "trunc", 1.125)}
    assert {one["codec"] for one in results["comparisons"]} == {"jpeg-gmc"}
    swept = [one for one in results["measured"] if one["name"] == "gmc"]
    assert len({tuple(one["table"]) for one in swept}) > 3
    for one in swept:
        packed = actcodec.codec("jpeg-gmc", dqt=one["table"], rec=0.25, S=1.125).compress(maps[2])
        assert one["point"]["bytes_per_value"] == packed.nbytes / maps[2].numel()
    report = (out / "report.md").read_text()
    assert "| jpeg-gmc | uniform-16 |" in report
    assert "## S" not in report.replace("## Steps", "").replace("## Searched", "")
    with Image.open(io.BytesIO((out / "rate_distortion.png").read_bytes())) as picture:
        assert len({pixel for _, pixel in picture.convert("RGB").getcolors(1 << 20)}) > 5


def test_training_runs_are_recorded_and_sgd_writes_its_own_table(tmp_path):
    sgd = ("--alpha", 0.05, "--kind", "shift", "--optimizer", "sgd")
    arguments = ("--limit", 8, "--batch", 4, "--epochs", 1, "--record", tmp_path / "r.npz", "-o", tmp_path / "out")
    result = run(dqt, *sgd, *arguments)
    assert result.exit_code == 0, result.output
    recorded = load_activations(tmp_path / "r.npz")
    assert recorded[0].values.shape == (4, 1, 16, 16)
    assert len(recorded) == 7
    report = (tmp_path / "out" / "report.md").read_text()
    assert "depth 1, seed 0" in report
    assert "depth 2, seed 1" in report
    assert f"7 tensors, {sum(one.values.numel() for one in recorded)} values" in report
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["settings"]["rate"] == "entropy"
    found = {one["name"]: one for one in results["found"]}
    c = coefficients([one.values for one in recorded], 1.125).numpy()
    expected = objective(c, read_table(tmp_path / "out" / "table.json"), 0.05, "trunc", "shift", "entropy")
    assert found["sgd"]["objective"] == pytest.approx(expected, rel=1e-12)


def test_arrays_of_another_shape(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 4), np.float32))
    result = run(dqt, "--input", tmp_path / "a.npz", "-o", tmp_path / "out")
    assert "array 'x'" in str(result.exception)
