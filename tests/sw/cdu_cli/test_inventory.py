"""Output of ``cdu list``: missing things first, on one screen; everything with --all."""

import json
import re

from cdu_cli import inventory
from cdu_cli.inventory import _missing, _names
from click.testing import CliRunner
from command_line import ENTRY


def listed(*words):
    result = CliRunner().invoke(ENTRY, ["list", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_begins_with_what_is_missing_and_fits_a_screen(tmp_path):
    text = listed("--json", str(tmp_path / "here.json"))
    lines = text.splitlines()
    assert lines[0] == "missing:"
    found = json.loads((tmp_path / "here.json").read_text())
    absent = [row for rows in found.values() for row in rows if not row.get("here", True)]
    first = text[: text.index("\nhere (`cdu list --all` says more):")]
    for row in absent:
        assert re.search(rf"\b{re.escape(row['name'])}\b", first), row
    assert sum(-(-len(line) // 100) for line in lines) <= 40
    assert all(re.search(rf"^  {title} ", text, re.MULTILINE) for title in found)


def test_all_names_everything(tmp_path):
    text = listed("--all", "--json", str(tmp_path / "here.json"))
    found = json.loads((tmp_path / "here.json").read_text())
    assert all(f"  {row['name']} " in text for rows in found.values() for row in rows)


def test_names_with_the_same_advice_share_a_line():
    rows = [inventory._absent(name, f"add it with `cdu pdk fetch {name}`") for name in ("one", "two")]
    rows += [inventory._present("three"), inventory._absent("four", "add it with `pip install four`")]
    assert _missing(rows) == {
        "one, two": "add it with `cdu pdk fetch NAME`",
        "four": "add it with `pip install four`",
    }
    assert _names(rows) == "three"
    assert _names([inventory._present(str(number)) for number in range(9)]) == "9"
