"""Example of docs/developer/add-a-block.md: the block that the page adds passes the three checks that it names."""

import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from tools_here import needs_provers, needs_verilator

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "developer" / "add-a-block.md").read_text(encoding="utf-8")
PACKAGES = ("hw/cdu", "sw/actcodec", "verif/cdu_verif")


def _fenced(language):
    return re.findall(rf'^```{language} title="(.*?)"\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL)


def _commands(program):
    return re.findall(rf"^{program} .*", PAGE, re.MULTILINE)


def _patched(text, lines):
    """Return text with lines that begin with + inserted behind the line before them."""
    for before, line in pairwise(lines):
        if line.startswith("+"):
            assert text.count(before[1:] + "\n") == 1, before
            text = text.replace(before[1:] + "\n", f"{before[1:]}\n{line[1:]}\n")
    return text


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Return environment variables with which Python finds copies of the packages, with the page's additions."""
    tree = tmp_path_factory.mktemp("tree")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    for path, content in _fenced("python"):
        assert not (tree / path).exists(), f"{path} is there already"
        (tree / path).write_text(content, encoding="utf-8")
    for path, content in _fenced("diff"):
        patched = _patched((tree / path).read_text(encoding="utf-8"), content.splitlines())
        (tree / path).write_text(patched, encoding="utf-8")
    folders = os.pathsep.join(str(tree / package.partition("/")[0]) for package in PACKAGES)
    return {**os.environ, "PYTHONPATH": folders}


def _run(command, environment, folder):
    """Run a command of the page and return its output; AssertionError if it fails."""
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_page_adds_four_files_and_two_lines():
    assert len(_fenced("python")) == 4
    assert [line[0] for _, content in _fenced("diff") for line in content.splitlines()].count("+") == 2


def test_its_cases_pass_in_amaranths_simulator(environment, tmp_path):
    (command,) = _commands("python -c")
    _run([sys.executable, "-c", re.search('"(.*)"', command)[1]], environment, tmp_path)


@pytest.mark.campaign
@needs_verilator
def test_its_cases_pass_as_verilog(environment, tmp_path):
    (command,) = _commands("cdu verify")
    printed = _run([Path(sys.executable).with_name("cdu"), *command.split()[1:]], environment, tmp_path)
    assert re.search(r"11 tests, 11 passed, 0 failed", printed), printed


@needs_provers
def test_its_proofs_hold(environment, tmp_path):
    (command,) = _commands("cdu formal")
    printed = _run([Path(sys.executable).with_name("cdu"), *command.split()[1:]], environment, tmp_path)
    assert "arithmetic" in printed, printed
    assert re.search(r"5 properties: 5 proven, 0 not", printed), printed
