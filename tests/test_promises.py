"""Every promise of the pages about bytes, ports and registers has a test.

docs/reference/promises_bitstream.csv and docs/reference/promises_unit.csv quote the sentences and name the tests.
"""

import ast
import csv
import re
from functools import cache
from pathlib import Path

import pytest
from cdu_verif.stimulus.streams import jpeg_base, rules
from cdu_verif.stimulus.streams.ignored import ignored

ROOT = Path(__file__).parents[1]
TABLES = sorted(ROOT.glob("docs/reference/promises_*.csv"))
ROWS = [row for path in TABLES for row in csv.DictReader(path.open(encoding="utf-8"))]
#: Pages, and the sections of which every block is quoted; None for all.
PAGES = {
    "reference/bitstream.md": None,
    "user/integration.md": None,
    "reference/registers.md": {"0", "A job", "Errors", "Records"},
}
#: Values with which tests of rules are parametrised.
NAMES = {
    "tests/sw/actcodec/codecs/test_stream_rules.py": {one.name for one in (*rules.rules(), *ignored())},
    "tests/sw/actcodec/codecs/test_jpeg_base_rules.py": {rule.name.removeprefix("jpeg-base, ") for rule in jpeg_base.rules()},
}


def plain(text):
    return " ".join(text.split())


@cache
def sections(page):
    """Return the text of each section by its number or title, without comments and code; 0 is the part before the first."""
    text = re.sub(
        r"<!--.*?-->|^```.*?^```", "", (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
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


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["sentence"][:40])
def test_a_sentence_stands_in_its_section_and_its_tests_exist(row):
    assert plain(row["sentence"]) in plain(sections(row["page"])[row["section"]])
    for test in row["test"].split("; "):
        path, name, parameter = re.fullmatch(r"([\w/]+\.py)::(\w+)(?:\[(.+)\])?", test).groups()
        assert name in functions(path), test
        assert parameter is None or parameter in NAMES[path], test


@pytest.mark.parametrize("page", PAGES)
def test_nothing_on_the_page_is_without_a_test(page):
    """But what only leads to what follows it, and pictures."""
    quoted = [plain(row["sentence"]) for row in ROWS if row["page"] == page]
    for section, text in sections(page).items():
        for block in blocks(text) if PAGES[page] is None or section in PAGES[page] else ():
            if not block.endswith((":", "when")) and not block.startswith("!["):
                assert any(sentence in block for sentence in quoted), f"section {section}: {block}"


def test_every_rule_has_a_sentence():
    named = {match for row in ROWS for match in re.findall(r"(?:refused|decoded|nothing)\[([^]]+)\]", row["test"])}
    assert set().union(*NAMES.values()) <= named
