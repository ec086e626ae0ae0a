"""The README's commands on a machine that has what the README asks for."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def asked_for():
    """The packages of the README's one line."""
    (line,) = re.findall(r"^ +apt install (.+)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    return line.split()


def programs(folder, *names):
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(shutil.which(name))
    return folder


def test_ci_installs_what_the_readme_asks_for_and_nothing_else(tmp_path):
    said = tmp_path / "said"
    stand_ins = programs(tmp_path / "bin", "bash", "sed", "dirname")
    for name in ("apt-get", "make"):
        (stand_ins / name).write_text(f'#!/bin/bash\necho {name} "$@" >> {said}\n')
        (stand_ins / name).chmod(0o755)
    subprocess.run([ROOT / ".ci" / "run"], env={"PATH": str(stand_ins)}, check=True)
    update, install, make = (line.split() for line in said.read_text().splitlines())
    assert update[:2] == ["apt-get", "update"]
    assert install[:2] == ["apt-get", "install"]
    assert [word for word in install[2:] if not word.startswith("-")] == asked_for()
    assert make == ["make", "test"]


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("target", ["verify", "full"])
def test_make_does_without_icarus_and_says_so(tmp_path, target, here):
    folder = programs(tmp_path / "bin", "make", "sh", "echo")
    if here:
        (folder / "iverilog").symlink_to("/bin/true")
    command = [folder / "make", "-n", "--old-file=.venv/.installed", target]
    planned = subprocess.run(command, cwd=ROOT, env={"PATH": str(folder)}, capture_output=True, text=True, check=True).stdout
    (icarus,) = (line for line in planned.splitlines() if "--sim icarus" in line)
    assert icarus.startswith('echo "left out, because iverilog is not installed:"') is not here
    others = [line for line in planned.splitlines() if "cdu verify" in line and line != icarus]
    assert others
    assert all(line.startswith(".venv/bin/cdu") for line in others)
