"""docs/user/plugin.md: the tests that it names exist. Its snippets are run by tests/test_snippets.py."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
PAGE = (TESTS.parents[2] / "docs" / "user" / "plugin.md").read_text()
ROWS = [f"S{number}" for number in range(1, 44) if number != 24] + [f"C{number}" for number in range(1, 15)]


def test_every_row_has_tests_that_exist():
    rows = {line.split("|")[1].split()[0]: line for line in PAGE.splitlines() if re.match(r"\| [SC]\d+ ", line)}
    assert list(rows) == ROWS
    for line in rows.values():
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", line)
        assert named
        for file, function in named:
            tree = ast.parse((TESTS / file).read_text())
            assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
