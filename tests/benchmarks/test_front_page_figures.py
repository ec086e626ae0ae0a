"""Check the figures of the README, of the index of the manual and of `cdu list` against what was measured."""

import json
import re
from pathlib import Path

import configurations
import front_page
from actcodec.policies import recommended
from cdu_cli.configurations import REGISTERS
from cdu_cli.main import app
from typer.testing import CliRunner

DOCS = Path(__file__).parents[2] / "docs"
README = DOCS.with_name("README.md").read_text(encoding="utf-8")


def test_figures_are_those_that_were_measured():
    for path in front_page.PAGES:
        page = path.read_text(encoding="utf-8")
        assert f"{front_page.BEGIN}\n\n{front_page.figures(path)}\n\n{front_page.END}" in page, path
        assert front_page.written(path) == page
    figures = json.loads(configurations.DATA.read_text(encoding="utf-8"))
    assert configurations.page(figures) == configurations.PAGE.read_text(encoding="utf-8")


def test_figures_are_those_of_the_present_register_map():
    """The front page and `cdu list` give no figure of a unit that was measured with another register map."""
    listed = CliRunner().invoke(app, ["list", "--all"]).output
    for name, found in json.loads(configurations.DATA.read_text(encoding="utf-8")).items():
        present = found["registers"] == REGISTERS
        for page in (README, (DOCS / "index.md").read_text(encoding="utf-8")):
            assert bool(re.search(rf"^\| `{name}` ", page, re.MULTILINE)) is present
            assert present or re.search(rf"Not measured with this map: .*`{name}`", page)
        (line,) = re.findall(rf"^  {name} .*$", listed, re.MULTILINE)
        assert ("kGE" in line) is present
        assert (f"register_map {REGISTERS}" in line) is present


def test_tests_are_counted_alike_everywhere():
    listed = CliRunner().invoke(app, ["list", "--all"]).output
    for name, found in json.loads(configurations.DATA.read_text(encoding="utf-8")).items():
        tests = found["tests"]
        passed = tests["tests"] - tests["skipped"] - tests["failures"]
        whole = f"{passed} of {tests['tests']}, {tests['skipped']} skipped"
        pages = [(configurations.PAGE.read_text(encoding="utf-8"), whole)]
        if found["registers"] == REGISTERS:
            fronts = (README, (DOCS / "index.md").read_text(encoding="utf-8"))
            pages += [(listed, whole), *((page, f"| {passed} |") for page in fronts)]
        for page, said in pages:
            (row,) = re.findall(rf"^(?:\| `?|  ){name}`? .*$", page, re.MULTILINE)
            assert said in row


def test_all_pages_recommend_the_same():
    pages = [path.read_text(encoding="utf-8") for path in front_page.PAGES]
    for family in recommended.families():
        text = recommended.recommended(family).text
        for page in pages:
            rows = re.findall(rf"^\| {re.escape(family)} \| .*`.*$", page, re.MULTILINE)
            assert rows
            assert all(f"`{text}`" in row for row in rows)


def test_page_says_which_units_are_older_than_the_present_one():
    figures = json.loads(configurations.DATA.read_text(encoding="utf-8"))
    present = {name: found | {"registers": configurations.REGISTERS} for name, found in figures.items()}
    assert "Measured with register map" not in configurations.page(present)
    older = present | {"tiny": figures["tiny"] | {"registers": "0.9"}}
    assert "Measured with register map 0.9: tiny.\n" in configurations.page(older)
