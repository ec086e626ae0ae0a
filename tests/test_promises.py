"""Every promise of the pages about bytes, ports and registers has a test.

An anchor, `<!-- p:NAME -->`, stands behind each promised sentence, part of a sentence or row of a table. The tables
docs/reference/promises_*.csv name the anchors and the tests, so a sentence may be put in better words.
"""

import ast
import csv
import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from cdu_verif.stimulus.streams import jpeg_base, rules
from cdu_verif.stimulus.streams.ignored import ignored
from manual_pages import HOOKS

ROOT = Path(__file__).parents[1]
TABLES = sorted(ROOT.glob("docs/reference/promises_*.csv"))
ROWS = [row for path in TABLES for row in csv.DictReader(path.open(encoding="utf-8"))]
TEXTS = {path.relative_to(ROOT / "docs").as_posix(): path.read_text(encoding="utf-8") for path in ROOT.glob("docs/**/*.md")}
#: Pages, and the sections in which every block holds a promise; None for all.
PAGES = {
    "reference/bitstream.md": None,
    "user/integration.md": None,
    "reference/registers.md": {"0", "A job", "Errors", "Records"},
}
CODE = re.compile(r"^```.*?^```|^    [^\n]*$|(?<!`)`[^`\n]+`", re.DOTALL | re.MULTILINE)
#: Values with which tests of rules are parametrised.
NAMES = {
    "tests/sw/actcodec/codecs/test_stream_rules.py": {one.name for one in (*rules.rules(), *ignored())},
    "tests/sw/actcodec/codecs/test_jpeg_base_rules.py": {rule.name.removeprefix("jpeg-base, ") for rule in jpeg_base.rules()},
}


def plain(text):
    return " ".join(text.split())


def prose(page):
    """Return the text of a page without comments other than anchors, and without code."""
    return CODE.sub("", re.sub(r"<!--(?!\s*p:).*?-->", "", TEXTS[page], flags=re.DOTALL))


@cache
def sections(page):
    """Return the text of each section by its number or title, without code and comments but anchors; 0 is what comes first."""
    text = prose(page)
    parts = re.split(r"^## (\d+(?=\.)|.*)(?:\. .*)?$", text, flags=re.MULTILINE)
    return {"0": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def blocks(text):
    """Paragraphs, items of lists and rows of tables, without headings and without the first two rows of a table."""
    found, lines, before = [], [], ""
    for line in [*text.splitlines(), ""]:
        is_row = line.startswith("|")
        is_head = is_row and (not before.startswith("|") or set(line) <= set("|-: "))
        if not line.strip() or is_row or re.match(r"([-*]|\d+\.) |#", line):
            found.append(" ".join(lines))
            lines = []
        if line.strip() and not line.startswith("#") and not is_head:
            lines.append(line)
        if is_row:
            found.append(" ".join(lines))
            lines = []
        before = line
    return [plain(block) for block in found if block.strip()]


@cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def test_every_anchor_has_a_row_and_every_row_an_anchor():
    anchors = [name for text in TEXTS.values() for name in HOOKS.ANCHOR.findall(text)]
    rows = [row["anchor"] for row in ROWS]
    assert sorted(anchors) == sorted(set(anchors)), "an anchor stands in one place only"
    assert sorted(rows) == sorted(set(rows)), "an anchor has one row, with all its tests"
    assert sorted(anchors) == sorted(rows)


@pytest.mark.parametrize("page", TEXTS)
def test_an_anchor_stands_behind_words(page):
    """Check for anchors at the beginning of a line, where a forge takes the rest of the line for HTML, and misspelt ones."""
    assert not re.findall(r"^(?:[ \t>|]|[-*] |\d+\. )*<!-- p:.*", TEXTS[page], re.MULTILINE)
    assert len(re.findall(r"<!--\s*p:", TEXTS[page])) == len(HOOKS.ANCHOR.findall(prose(page))), "in code a forge shows them"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["anchor"])
def test_the_tests_of_a_promise_exist(row):
    for test in row["test"].split("; "):
        path, name, parameter = re.fullmatch(r"([\w/]+\.py)::(\w+)(?:\[(.+)\])?", test).groups()
        assert name in functions(path), test
        assert parameter is None or parameter in NAMES[path], test


@pytest.mark.parametrize("page", PAGES)
def test_nothing_on_the_page_is_without_a_test(page):
    """But what only leads to what follows it, and pictures."""
    for section, text in sections(page).items():
        for block in blocks(text) if PAGES[page] is None or section in PAGES[page] else ():
            if not block.endswith((":", "when")) and not block.startswith("!["):
                assert HOOKS.ANCHOR.search(block), f"section {section}: {block}"


def test_readers_of_the_site_see_no_anchor():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="reference/registers.md"))
    text = HOOKS.on_page_markdown("| a<!-- p:b-1 --> |\n<!-- c -->", page)
    assert text == "| a |\n<!-- c -->"


def test_every_rule_has_a_sentence():
    named = {match for row in ROWS for match in re.findall(r"(?:refused|decoded|nothing)\[([^]]+)\]", row["test"])}
    assert set().union(*NAMES.values()) <= named
