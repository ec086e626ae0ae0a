"""`cdu sweep` from the command line: real synthesis and the golden model, here, on a Dask cluster, and after a kill."""

import json
import math
import subprocess
import sys
import time
from importlib.util import find_spec

import actcodec
import numpy as np
import psutil
import pytest
import torch
import typer
from cdu_cli import sweep
from cdu_tools.errors import UserError
from typer.testing import CliRunner

BLOCK = ("--block", "shift_quantizer", "--yosys", "pyosys", "--recipe", "area", "--clock-ns", "2")
SPACE = ("--vary", "rounding=trunc,half_away", "--vary", "cdus=1,2", "--vary", "scale_bits=8,9")


@pytest.fixture
def command():
    app = typer.Typer(pretty_exceptions_enable=False)
    sweep.register(app)

    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two tensors that look like activations, and their file."""
    source = np.random.default_rng(5)
    arrays = {
        "a": source.normal(size=(2, 3, 16, 16)).cumsum(3).astype(np.float32),
        "b": np.maximum(source.normal(size=(1, 4, 9, 13)), 0).astype(np.float32),
    }
    path = tmp_path_factory.mktemp("recorded") / "two.npz"
    np.savez(path, **arrays)
    return path, arrays


def needs_pyosys():
    """Skip without pyosys, and do not import it: it makes each library loaded later share its names with all others."""
    if find_spec("pyosys") is None:
        pytest.skip("needs pyosys")


@pytest.fixture(scope="module")
def swept(recorded, nangate45, tmp_path_factory):
    """A finished sweep by processes of this machine: its folder and sweep.json."""
    needs_pyosys()
    folder = tmp_path_factory.mktemp("swept")
    app = typer.Typer(pretty_exceptions_enable=False)
    sweep.register(app)
    arguments = [*BLOCK, *SPACE, "--activations", str(recorded[0]), "--jobs", "2", "-o", str(folder)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return folder, json.loads((folder / "sweep.json").read_text())


def test_area_ratio_and_error_of_every_point(swept, recorded):
    folder, content = swept
    points = content["points"]
    assert [point["parameters"] for point in points] == [
        {"rounding": rounding, "cdus": cdus, "scale_bits": "8"} for rounding in ("trunc", "half_away") for cdus in "12"
    ]
    assert len(content["skipped"]) == 4
    assert "scale_bits = 9 is not allowed" in content["skipped"][0]["reason"]
    assert (folder / "pareto.png").read_bytes().startswith(b"\x89PNG")
    for point in points:
        assert point["errors"] == []
        codec = actcodec.codec("jpeg-act", rounding=point["parameters"]["rounding"])
        size, errors = 0, []
        for array in recorded[1].values():
            packed = codec.compress(torch.from_numpy(array))
            size += len(packed.to_bytes())
            difference = codec.decompress(packed).numpy().astype(float) - array
            errors.append(math.sqrt((difference**2).sum() / (array.astype(float) ** 2).sum()))
        values = sum(array.size for array in recorded[1].values())
        assert point["figures"]["ratio"] == pytest.approx(4 * values / size)
        assert point["figures"]["bytes_per_value"] == pytest.approx(size / values)
        assert point["figures"]["relative_error"] == pytest.approx(sum(errors) / 2)
        assert list(point["ratio"]) == ["sfpr", "sfpr+zvc", "jpeg-act"]


def test_equal_hardware_is_synthesised_once(swept):
    folder, content = swept
    areas = [point["area"]["area_um2"] for point in content["points"]]
    # The number of CDUs is nothing to a quantiser; rounding costs gates.
    assert areas[0] == areas[1] < areas[2] == areas[3]
    names = sorted(path.name.partition("-")[0] for path in (folder / "points").iterdir())
    assert names == ["area"] * 2 + ["ratio"] * 4 + ["verilog"] * 4


def test_the_page_marks_what_nothing_beats(swept):
    folder, content = swept
    assert [(front["x"], front["y"]) for front in content["fronts"]] == [("ge", "relative_error"), ("relative_error", "ratio")]
    # Truncation is smaller and compresses more, rounding is more exact: in both comparisons nothing beats either.
    assert [front["points"] for front in content["fronts"]] == [[1, 2, 3, 4]] * 2
    page = (folder / "sweep.md").read_text()
    assert "| # | rounding | cdus | scale_bits | area (GE) |" in page
    assert page.count("| jpeg-act | A B |") == 4
    assert "scale_bits=9: scale_bits = 9 is not allowed" in page
    assert "not a tape-out result" in page


def test_a_finished_sweep_measures_nothing_again(swept, recorded, command, tmp_path):
    folder, content = swept
    before = {path: path.stat().st_mtime_ns for path in (folder / "points").iterdir()}
    target = tmp_path / "again.json"
    result = command(*BLOCK, *SPACE, "--activations", recorded[0], "--jobs", 1, "-o", folder, "--json", target)
    assert result.exit_code == 0, result.output
    assert {path: path.stat().st_mtime_ns for path in (folder / "points").iterdir()} == before
    assert json.loads(target.read_text())["points"] == content["points"]


@pytest.mark.campaign
def test_a_dask_cluster_gives_the_same(swept, recorded, command, tmp_path):
    distributed = pytest.importorskip("distributed")
    _, content = swept
    half = (*BLOCK, "--vary", "rounding=trunc,half_away")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        options = ("--activations", recorded[0], "--scheduler", cluster.scheduler_address)
        result = command(*half, *options, "-o", tmp_path)
        processes = {json.loads(path.read_text())["process"] for path in (tmp_path / "points").iterdir()}
    assert result.exit_code == 0, result.output
    here = [point for point in content["points"] if point["parameters"]["cdus"] == "1"]
    for one, other in zip(json.loads((tmp_path / "sweep.json").read_text())["points"], here, strict=True):
        assert {**one["config"], **one["figures"]} == {**other["config"], **other["figures"]}
        assert (one["area"], one["ratio"]) == (other["area"], other["ratio"])
    assert len(processes) == 2


@pytest.mark.parametrize(("workers", "state"), [(0, "no workers"), (1, "workers with several threads")])
def test_a_cluster_that_cannot_measure_is_refused(command, tmp_path, workers, state):
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": workers, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster:
        address = cluster.scheduler_address
        result = command(*BLOCK, "--measure", "area", "--scheduler", address, "-o", tmp_path / "out")
    assert isinstance(result.exception, UserError)
    assert str(result.exception).startswith(f"the cluster at {address} has {state}: start some with `dask worker {address}")
    assert not (tmp_path / "out").exists()


def test_a_killed_sweep_goes_on_where_it_was_and_leaves_no_process(command, nangate45, tmp_path):
    needs_pyosys()
    arguments = [*BLOCK, "--vary", "rounding=trunc,half_away", "--measure", "area", "--jobs", "1", "-o", str(tmp_path)]
    main = "import sys; from cdu_cli.main import main; sys.argv[0] = 'cdu'; main()"
    process = subprocess.Popen([sys.executable, "-c", main, "sweep", *arguments], stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 240
    while not (first := list(tmp_path.glob("points/area-*.json"))):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < limit
        time.sleep(0.02)
    children = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    process.communicate()
    assert process.returncode != 0
    assert not (tmp_path / "sweep.json").exists()
    assert psutil.wait_procs(children, timeout=60)[1] == []
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("points/*.json")}
    assert len(first) == 1

    result = command(*arguments)
    assert result.exit_code == 0, result.output
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list(tmp_path.glob("points/area-*.json"))) == 2
    assert all(point["figures"]["ge"] > 0 for point in json.loads((tmp_path / "sweep.json").read_text())["points"])


def test_a_point_that_fails_is_named_and_the_others_are_there(command, tmp_path):
    path = tmp_path / "large.npz"
    # Too large for a half, so that a unit for fp16 cannot have such values.
    np.savez(path, a=np.full((1, 1, 8, 8), 1e6, dtype=np.float32))
    # 9-bit samples build no unit, which only the measure knows.
    (tmp_path / "space.toml").write_text("sample_bits = [8, 9]")
    space = ("--vary", "value_format=fp32,fp16", "--space", tmp_path / "space.toml")
    options = ("--measure", "ratio", "--activations", path, "--jobs", 1)
    result = command("--set", "modes=sfpr", *space, *options, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "1 of 2 points failed" in result.output
    content = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert [bool(point["figures"]) for point in content["points"]] == [True, False]
    page = (tmp_path / "out" / "sweep.md").read_text()
    assert "## Failed" in page
    assert "value_format=fp16 sample_bits=8: ratio: " in page
    assert "value_format=fp16 sample_bits=9: sample_bits = 9 builds no unit" in page
