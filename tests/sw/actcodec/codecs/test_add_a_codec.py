"""The steps of docs/developer/add-a-codec.md are applied to a copy of the package, and the resulting codec is tried."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "developer" / "add-a-codec.md").read_text(encoding="utf-8")
FILES = re.findall(r"^`(sw/\S+\.py)`:\n\n```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CHANGES = re.findall(r"^```diff\n--- (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(STEP,) = re.findall(r"^```py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(SUITE,) = re.findall(r"^    \.venv/bin/(pytest .*)$", PAGE, re.MULTILINE)
CHECKS = """
assert losses[-1] < 0.5 * losses[0], losses
of_codec = [record for record in stats.records if record.codec == "minmax"]
assert len(of_codec) >= 2
assert all(record.bytes_compressed < record.bytes_original / 4 for record in of_codec)

codec = actcodec.codec("minmax", bits=4)
maps = torch.randn(4, 16, 14, 14)
form = codec.compress(maps)
error = (form.decompress() - maps).abs().amax((0, 2, 3))
assert bool((error <= form.step * (0.5 + 1e-5)).all()), error / form.step
assert bool((error > 0.45 * form.step).all()), "a nearest level is half a step away somewhere"
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """Return the environment of processes that use the changed package."""
    root = tmp_path_factory.mktemp("with_minmax")
    shutil.copytree(ROOT / "sw" / "actcodec", root / "sw" / "actcodec", ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in FILES:
        assert not (ROOT / path).exists(), f"{path} is there already"
        (root / path).write_text(text, encoding="utf-8")
    for path, lines in CHANGES:
        before, after = (
            "".join(line[1:] for line in lines.splitlines(keepends=True) if line[0] in kinds) for kinds in (" -", " +")
        )
        text = (root / path).read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{path} has not the lines of the page"
        (root / path).write_text(text.replace(before, after), encoding="utf-8")
    return os.environ | {"PYTHONPATH": str(root / "sw")}


def run(environment, *arguments):
    done = subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_has_all_steps():
    assert len(FILES) == 2
    assert {path for path, _ in CHANGES} == {f"sw/actcodec/{room}/catalog.py" for room in ("codecs", "policies")}


def test_it_conforms(changed):
    result = run(changed, "-m", *shlex.split(SUITE), "-v", "-p", "no:cacheprovider")
    passed = re.findall(r"::test_(\S+) PASSED", result)
    assert {name.partition("_")[0] for name in passed} >= {f"c{row}" for row in (1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14)}
    assert {row for name in passed for row in re.findall(r"^full_product\[(c\d+)_", name)} >= {"c1", "c2", "c4", "c6"}
    assert len(passed) > 45
    assert "skipped" not in result


def test_it_trains(changed):
    table = run(changed, "-c", STEP + CHECKS)
    assert "minmax" in table
