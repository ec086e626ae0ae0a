"""Yosys as a program for callers of ``yosys -ql LOG SCRIPT``."""

import subprocess
import sys

import pytest

VERILOG = "module both(input a, input b, output y);\n  assign y = a & b;\nendmodule\n"


@pytest.fixture
def program(tmp_path):
    (tmp_path / "both.v").write_text(VERILOG)

    def call(*arguments):
        command = [sys.executable, "-m", "cdu_tools.yosys_program", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return call


def test_a_script_is_carried_out_and_its_log_kept(program, tmp_path):
    (tmp_path / "count.ys").write_text("read_verilog both.v\nstat\nwrite_json both.json\n")
    done = program("-ql", "count.log", "count.ys")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "=== both ===" in (tmp_path / "count.log").read_text()
    assert '"$and"' in (tmp_path / "both.json").read_text()


def test_what_fails_is_said_on_standard_error(program, tmp_path):
    (tmp_path / "none.ys").write_text("read_verilog none.v\n")
    done = program("-ql", "none.log", "none.ys")
    assert done.returncode == 1
    assert "ERROR: File `none.v' not found" in done.stderr
    done = program("-p", "stat")
    assert done.returncode == 1
    assert done.stderr == "the arguments '-p stat' are not allowed: use -ql LOG SCRIPT\n"
