"""Check that `make quick` tries every room, every codec, and what a newcomer types first."""

import re
from pathlib import Path

import pytest
from near import MIRRORED

ROOT = Path(__file__).parents[1]
CHOSEN = (ROOT / "tests" / "quick.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", CHOSEN)
def test_each_line_names_tests(line):
    path, _, name = line.partition("::")
    assert (ROOT / path).exists()
    assert not name or re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_room_is_tried():
    """Rooms are those of the tests: a new one needs a line."""
    rooms = {
        (tests, path.relative_to(ROOT / "tests" / tests).parts[0])
        for tests in MIRRORED
        for path in (ROOT / "tests" / tests).rglob("test_*.py")
    }
    missing = [
        f"tests/{tests}/{room}"
        for tests, room in sorted(rooms)
        if not any(f"{line}/".startswith(f"tests/{tests}/{room}/") for line in CHOSEN)
    ]
    assert not missing


def test_every_codec_and_the_first_lines_of_the_readme_are_tried():
    """The row has every codec, as a test beside it checks for all rows; the golden model is tried as a whole."""
    row = "tests/sw/actcodec/codecs/test_codecs_conformance.py::test_c10_packed_bytes_decode_to_the_same_bits"
    assert {row, "tests/sw/actcodec/golden", "tests/test_first_hour.py"} <= set(CHOSEN)


def test_no_line_is_there_twice():
    assert len(set(CHOSEN)) == len(CHOSEN)


def test_the_table_of_contributing_names_what_is_there():
    _, _, section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## Touched this, run that\n")
    rows = re.findall(r"^\| [^|]+ \| ([^|]*`[^|]+) \| [^|]+ \|$", section, re.MULTILINE)
    assert 8 < len(rows) <= 12
    commands = [command.split() for row in rows for command in re.findall(r"`((?:make|pytest|cdu|python) [^`]+)`", row)]
    assert len(commands) > 10
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for program, *words in commands:
        if program == "make":
            assert re.search(rf"^{words[0]}:", makefile, re.MULTILINE), words
        assert all((ROOT / word).exists() for word in words if "/" in word and not word.startswith("build/")), words
