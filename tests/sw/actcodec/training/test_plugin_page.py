"""docs/user/plugin_traps.csv: the tests that it names exist. Snippets of the page are run by tests/test_snippets.py."""

import ast
import csv
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
USER = TESTS.parents[2] / "docs" / "user"
ROWS = list(csv.DictReader((USER / "plugin_traps.csv").open(encoding="utf-8")))
NAMES = [f"S{number}" for number in range(1, 44) if number != 24] + [f"C{number}" for number in range(1, 15)]


def test_the_page_counts_the_rows():
    assert [row["row"] for row in ROWS] == NAMES
    assert f"lists {len(NAMES)} behaviours" in (USER / "plugin.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["row"])
def test_every_row_has_tests_that_exist(row):
    for test in row["tests"].split("; "):
        file, function = re.fullmatch(r"([\w/]+\.py)::(\w+)", test).groups()
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
