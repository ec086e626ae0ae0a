"""Cache of Verilator's runtime, which is compiled once for each set of options."""

import re
import shlex
import shutil
import subprocess

import pytest
from cdu_spec.config import CduConfig
from cdu_tools import verilator
from cdu_verif.regression import plan, regression
from cdu_verif.simulation import runtime_objects
from tools_here import needs_verilator

pytestmark = needs_verilator


@pytest.fixture
def tool():
    return verilator.find()


@pytest.mark.campaign  # without the cache only time is lost
def test_a_second_build_compiles_no_runtime(tool, tmp_path, monkeypatch):
    monkeypatch.setenv("CDU_CACHE_DIR", str(tmp_path / "cache"))
    (run,) = plan.runs(CduConfig(), ["brc_encoder"], full=False)
    logs = []
    for name in ("first", "second"):
        folder = tmp_path / name
        (test,) = regression.simulate(run, regression.Settings(folder, tests=("rate",))).tests
        assert test.status == "pass", test.message
        logs.append((folder / "runs" / run.folder / "build.log").read_text())
        if name == "first":
            shutil.rmtree(folder)
    assert ["-c -o verilated.o" in log for log in logs] == [True, False]
    assert ["-c -o Vtop__ALL.o" in log for log in logs] == [True, True]
    assert [log.count("-include") for log in logs] == [0, 2]  # cocotb's program and the design
    _takes_the_precompiled(folder / "runs" / run.folder / "sim", logs[1])


def _takes_the_precompiled(build, log):
    """Assert that the compiler uses the precompiled headers, which it does only for the same options; ``-H`` shows it."""
    for command in (line for line in log.splitlines() if "-include" in line):
        said = subprocess.run([*shlex.split(command), "-H"], cwd=build, capture_output=True, text=True, check=True).stderr
        assert re.search(r"^! .*runtime\.h\.gch$", said, re.MULTILINE)


def test_options_are_kept_apart(tool):
    found = [runtime_objects.ingredients(tool, options) for options in ([], ["--trace-fst"], ["--coverage-line"])]
    assert found[0] not in found[1:]
    assert found[1] != found[2]
    assert runtime_objects.ingredients(tool, []) == found[0]


def test_damaged_objects_are_not_lent(tmp_path, monkeypatch):
    monkeypatch.setenv("CDU_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "verilated.o").write_bytes(b"object")
    runtime_objects.keep(["options"], tmp_path / "build")
    assert runtime_objects.lend(["options"], tmp_path / "next") == ["--old-file=verilated.o"]
    assert (tmp_path / "next" / "verilated.o").read_bytes() == b"object"
    (kept,) = (tmp_path / "cache").glob("runtime-*/verilated.o")
    kept.write_bytes(b"")
    assert runtime_objects.lend(["options"], tmp_path / "third") == []
    runtime_objects.keep(["options"], tmp_path / "build")
    assert kept.read_bytes() == b"object"


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("CDU_CACHE_DIR", str(tmp_path / "file" / "cache"))
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "verilated.o").write_bytes(b"object")
    runtime_objects.keep(["options"], tmp_path / "build")
    assert runtime_objects.lend(["options"], tmp_path / "other") == []
    assert not list((tmp_path / "other").iterdir())
