"""The tutorials: their files are written and their commands run, in order, as a reader would."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tools_here import needs_icarus

ROOT = Path(__file__).parents[1]
FILE = re.compile(r'^```\w+ title="([\w.]+)"\n(.*?)^```', re.MULTILINE | re.DOTALL)
WORDS = 500


def text_of(name):
    return (ROOT / "docs" / "start" / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture
def printed(tmp_path):
    """Return a function that does what a tutorial says, in a folder with the sources beside it; output by command."""

    def follow(name):
        text = text_of(name)
        (tmp_path / "sw").symlink_to(ROOT / "sw")
        for file, content in FILE.findall(text):
            (tmp_path / file).write_text(content, encoding="utf-8")
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        found = {}
        for line in re.findall(r"^    (\S.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE):
            done = subprocess.run(shlex.split(line), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
            found[line] = done.stdout
        return found

    return follow


@pytest.mark.parametrize("name", ["compress_your_training", "unit_in_your_soc"])
def test_a_tutorial_is_short(name):
    assert len(text_of(name).split()) <= WORDS


def test_a_training_is_compressed(printed):
    found = printed("compress_your_training")
    (check,) = [output for line, output in found.items() if line.startswith("cdu check")]
    assert re.search(r"^jpeg-act +good ", check, re.MULTILINE)
    assert re.search(r"^recommended: \S+$", check, re.MULTILINE)
    ratios, right = {}, {}
    for line in ("python train.py none", "python train.py jpeg-act"):
        policy, ratio, per_cent = re.fullmatch(r"(\S+): ratio ([\d.]+), ([\d.]+) % right\n", found[line]).groups()
        ratios[policy], right[policy] = float(ratio), float(per_cent)
    assert ratios["none"] == 1
    said = re.search(r"`jpeg-act` prints a ratio of about (\d+)", text_of("compress_your_training"))[1]
    assert float(said) == pytest.approx(ratios["jpeg-act"], rel=0.1)
    assert right["none"] > 85
    assert abs(right["none"] - right["jpeg-act"]) < 5


@needs_icarus
def test_a_unit_is_generated_run_and_driven(printed, tmp_path):
    found = printed("unit_in_your_soc")
    commands = list(found)
    assert [line.split()[0] for line in commands] == ["cdu", "iverilog", "iverilog", "vvp", "gcc"]
    assert found[commands[1]] == ""
    assert found[commands[3]].splitlines()[-1] == "PASS"
    text = text_of("unit_in_your_soc")
    table = re.search(r"^\| file \|.*?\n\n", text, re.MULTILINE | re.DOTALL)[0]
    names = [name for cell in re.findall(r"^\| (`[^|]*)\|", table, re.MULTILINE) for name in re.findall(r"`([^`]+)`", cell)]
    files = {path.name for path in (tmp_path / "build" / "soc").iterdir()} - {"tb"}
    assert files == {f"tiny_dma_bits_64{name}" if name[0] in "._" else name for name in names}
    assert {path.name for path in tmp_path.glob("*.o")} == {"platform.o", "cdu_dma.o"}
