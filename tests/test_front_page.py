"""The first pages that a visitor sees: the README, the index of the manual, and the beginnings of its pages."""

import json
import re
import sys
from pathlib import Path

import pytest
from actcodec.policies import recommended
from cdu_cli.configurations import REGISTERS
from cdu_cli.main import app
from typer.testing import CliRunner

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: Words of the README, its tables included.
WORDS = 400


@pytest.fixture(scope="module")
def writers():
    """The modules that write figures."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import configurations
        import front_page
    finally:
        sys.path.pop(0)
    return front_page, configurations


def test_readme_is_short_and_has_a_picture():
    assert len(README.split()) <= WORDS
    assert re.search(r"!\[[^\]]+\]\(docs/\S+\.svg\)", README)


def test_figures_are_those_that_were_measured(writers):
    front_page, configurations = writers
    for path in front_page.PAGES:
        page = path.read_text(encoding="utf-8")
        assert f"{front_page.BEGIN}\n\n{front_page.figures(path)}\n\n{front_page.END}" in page, path
        assert front_page.written(path) == page
    figures = json.loads(configurations.DATA.read_text(encoding="utf-8"))
    assert configurations.page(figures) == configurations.PAGE.read_text(encoding="utf-8")


def test_figures_are_those_of_the_present_register_map(writers):
    """The front page and `cdu list` give no figure of a unit that was measured with another register map."""
    _, configurations = writers
    listed = CliRunner().invoke(app, ["list", "--all"]).output
    for name, found in json.loads(configurations.DATA.read_text(encoding="utf-8")).items():
        present = found["registers"] == REGISTERS
        for page in (README, (DOCS / "index.md").read_text(encoding="utf-8")):
            assert bool(re.search(rf"^\| `{name}` ", page, re.MULTILINE)) is present
            assert present or re.search(rf"Not measured with this map: .*`{name}`", page)
        (line,) = re.findall(rf"^  {name} .*$", listed, re.MULTILINE)
        assert ("kGE" in line) is present
        assert (f"register_map {REGISTERS}" in line) is present


def test_tests_are_counted_alike_everywhere(writers):
    _, configurations = writers
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


def test_all_pages_recommend_the_same(writers):
    front_page, _ = writers
    pages = [path.read_text(encoding="utf-8") for path in front_page.PAGES]
    for family in recommended.families():
        text = recommended.recommended(family).text
        for page in pages:
            rows = re.findall(rf"^\| {re.escape(family)} \| .*`.*$", page, re.MULTILINE)
            assert rows
            assert all(f"`{text}`" in row for row in rows)


def test_page_says_which_units_are_older_than_the_present_one(writers):
    _, configurations = writers
    figures = json.loads(configurations.DATA.read_text(encoding="utf-8"))
    present = {name: found | {"registers": configurations.REGISTERS} for name, found in figures.items()}
    assert "Measured with register map" not in configurations.page(present)
    older = present | {"tiny": figures["tiny"] | {"registers": "0.9"}}
    assert "Measured with register map 0.9: tiny.\n" in configurations.page(older)


def test_site_has_every_page():
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert sorted(re.findall(r": (\S+\.md)$", site, re.MULTILINE)) == sorted(
        page.relative_to(DOCS).as_posix() for page in PAGES
    )


def test_index_has_four_doors_of_five_pages():
    _, *doors = re.split(
        r"^## (?=I )", (DOCS / "index.md").read_text(encoding="utf-8").partition("\n## Figures")[0], flags=re.MULTILINE
    )
    pages = [re.findall(r"^- \[[^]]+\]\((\S+?\.md)\): \w", door, re.MULTILINE) for door in doors]
    assert [len(found) for found in pages] == [5] * 4
    assert len({page for found in pages for page in found}) == 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_begins_with_what_it_says(page):
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    title, first, *_ = re.split(r"\n\s*\n", text.strip())
    if "\n" in title:
        title, _, first = title.partition("\n")
    assert re.match(r"# \S", title)
    assert not re.match(r"#|\||```| {4}|- ", first), first
    assert len(" ".join(first.split())) >= 160, first
