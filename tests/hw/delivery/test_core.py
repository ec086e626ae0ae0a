"""What FuseSoC makes of the delivered core: its lint passes on the files that the core names, and on these alone."""

import subprocess

import pytest
import yaml
from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_spec.config import CONFIGS
from cdu_tools import verilator

UNITS = [CONFIGS["universal"], CONFIGS["tiny"].override(duplex="half")]


def linted(core, target, folder):
    """Verilator's answer to what edalize runs for a target."""
    chosen = core["targets"][target]
    tool = chosen["default_tool"]
    options = chosen["tools"][tool]
    names = [name.removeprefix(f"tool_{tool}? (").removesuffix(")") for name in chosen["filesets"]]
    files = [file for name in names for file in core["filesets"][name]["files"]]
    assert (tool, options["mode"]) == ("verilator", "lint-only")
    found = verilator.find()
    command = [found.program, "--lint-only", *options["verilator_options"], "--top-module", chosen["toplevel"], *files]
    return subprocess.run(command, cwd=folder, env=found.environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("target", ["default", "lint"])
def test_every_target_has_a_tool_and_passes(generated, target, tmp_path):
    generated[None].write(tmp_path)
    core = yaml.safe_load((tmp_path / "tiny.core").read_text().removeprefix("CAPI=2:\n"))
    done = linted(core, target, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "tiny.vlt").write_text("`verilator_config\n")
    assert linted(core, target, tmp_path).returncode, "without the waivers the lint has nothing to say"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.name}-{unit.duplex}")
def test_units_with_every_mode_and_in_half_duplex_have_no_warnings(unit: CduConfig, tmp_path):
    made = generator.kept(unit)
    made.write(tmp_path)
    assert verilator.find().lint(tmp_path / f"{made.name}.v", top=made.top) == ""
