"""The scripts of findings: sound shell, pinned public packages, nothing of this project; CI does not run them."""

import re
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "findings"
SCRIPTS = sorted(FOLDER.glob("*.sh"))
#: Packages of this project.
OWN = {path.name for room in ("sw", "hw", "verif", "synth", "extras/*") for path in FOLDER.parent.glob(f"{room}/*")}


def test_there_are_scripts_and_nothing_else():
    assert len(SCRIPTS) >= 10
    assert {path.name for path in FOLDER.iterdir()} == {"README.md", *(path.name for path in SCRIPTS)}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_keeps_the_rules(script):
    subprocess.run(["bash", "-n", script], check=True)
    text = script.read_text(encoding="utf-8")
    assert script.stat().st_mode & 0o111
    assert re.match(
        r"#!/usr/bin/env bash\n(# .+\n){2,}set -euo pipefail\nfolder=\$\(mktemp -d\)\ntrap 'rm -rf \"\$folder\"' EXIT\n", text
    )
    (packages,) = re.findall(r"pip\" install --quiet --disable-pip-version-check (.+)\n", text)
    assert all(re.fullmatch(r"[a-z_\d]+==\d[\d.]*(?:\.post\d)?", package) for package in packages.split())
    imported = set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE))
    assert imported
    assert not imported & OWN
    assert not re.search(r"/(?:home|root|work|tmp|opt)/|https?:", text)
    assert text.endswith('diff "$folder/seen" "$folder/now" && echo "as seen"\n')
