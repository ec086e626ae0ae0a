"""The README's commands on a machine with the README's requirements."""

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


def run_ci(folder, installed, apt="exit 0"):
    """Run CI's script with a simulated apt-get and these packages installed; return its result and its output."""
    said = folder / "said"
    stand_ins = programs(folder / "bin", "bash", "sed", "dirname", "grep")
    there = " ".join(installed)
    for name, does in (
        ("apt-get", f'echo apt-get "$@" >> {said}; {apt}'),
        ("make", f'echo make "$@" >> {said}'),
        ("dpkg-query", f'for one in {there}; do [ "${{@: -1}}" = $one ] && echo installed; done; true'),
    ):
        (stand_ins / name).write_text(f"#!/bin/bash\n{does}\n")
        (stand_ins / name).chmod(0o755)
    done = subprocess.run([ROOT / ".ci" / "run"], env={"PATH": str(stand_ins)}, check=True, capture_output=True, text=True)
    return [line.split() for line in said.read_text().splitlines()], done.stdout


@pytest.mark.parametrize("installed", [0, 2])
def test_ci_installs_what_the_readme_asks_for_and_nothing_else(tmp_path, installed):
    (update, install, make), _ = run_ci(tmp_path, asked_for()[:installed])
    assert update[:2] == ["apt-get", "update"]
    assert install[:2] == ["apt-get", "install"]
    assert [word for word in install[2:] if not word.startswith("-")] == asked_for()[installed:]
    assert make == ["make", "test"]


def test_ci_installs_nothing_where_all_is_there(tmp_path):
    assert run_ci(tmp_path, asked_for())[0] == [["make", "test"]]


def test_ci_goes_on_and_says_so_where_apt_fails(tmp_path):
    calls, said = run_ci(tmp_path, asked_for()[:-1], "exit 100")
    assert [call[:2] for call in calls] == [["apt-get", "update"], ["make", "test"]]
    assert f"goes on without these packages, which apt could not install: {asked_for()[-1]}" in said


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
