"""The README's Python and commands, run one after another as a user types them, give what the README promises."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST = ROOT / "examples" / "first.py"
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of a user, in which the README's Python has run."""
    folder = tmp_path_factory.mktemp("user")
    (snippet,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert FIRST.read_text(encoding="utf-8").endswith(f'"""\n\n{snippet}')
    said = subprocess.run([sys.executable, "-c", snippet], cwd=folder, check=True, capture_output=True, text=True).stdout
    assert re.search(r"^activations .* (\d\.\d\d)$", said, re.MULTILINE), said
    return folder


def lines(*programs):
    """The README's lines of code that begin with one of the programs."""
    return [line for line in re.findall(r"^    (\w.*)$", README, re.MULTILINE) if line.split()[0] in programs]


def shell(folder, line):
    """Return both streams of a line that runs in a folder, with the environment's programs first."""
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(line, shell=True, cwd=folder, env=environment, check=True, text=True, **both).stdout


def test_a_file_comes_back_as_the_report_says(folder):
    compress, info, decompress = (line for line in lines("cdu") if "activations" in line)
    report = shell(folder, compress)
    assert "jpeg-act" in shell(folder, info)
    shell(folder, decompress)
    given, back = (np.load(folder / name) for name in ("activations.npy", shlex.split(decompress)[-1]))
    assert given.shape == back.shape
    assert 0 < np.abs(given - back).max() < np.ptp(given) / 4
    assert re.search(r"PSNR", report), report


def test_a_unit_passes_its_bench(folder):
    (generate,) = (line for line in lines("cdu") if "generate" in line)
    (bench,) = lines("iverilog")
    shell(folder, generate)
    assert shell(folder, bench).splitlines()[-1] == "PASS"
