"""Results of other commands, read for the sign-off: mutants, tests in Amaranth's simulator, branches of Python."""

from __future__ import annotations

import ast
import csv
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from cdu_tools.errors import UserError
from cdu_tools.report import Table

from cdu_verif.mutation.campaign import EQUIVALENT, KILLED, SURVIVED

#: The module whose function plays the cases of a block.
_PLAYER = "cdu_verif.benches.in_amaranth"
#: Parts of the golden model and of the plug-in whose branches are counted.
_PACKAGES = ("golden", "codecs", "training", "saved", "policies")


def killed(path: Path) -> dict[str, float]:
    """Return the percentage of each block's mutants that a test kills, without equivalent ones.

    ``path`` is ``mutants.csv`` or ``report.json``.

    Raises UserError for a file that `cdu mutate` has not written.
    """
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            return {block["block"]: float(block["percent"]) for block in json.loads(text)["blocks"]}
        rows = csv.DictReader(text.splitlines())
        if not {"block", "outcome"} <= set(rows.fieldnames or ()):
            raise ValueError("it has no columns block and outcome")
        outcomes = [(row["block"], row["outcome"]) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is no report of `cdu mutate`: {error}") from None
    if strange := {outcome for _, outcome in outcomes} - {KILLED, SURVIVED, EQUIVALENT}:
        raise UserError(f"{path} is no report of `cdu mutate`: a mutant is {min(strange)!r}")
    counts = Counter(outcomes)
    found = {}
    for block in dict.fromkeys(block for block, _ in outcomes):
        real = counts[block, KILLED] + counts[block, SURVIVED]
        found[block] = 100 * counts[block, KILLED] / real if real else 100.0
    return found


def played_in_amaranth(folder: Path, blocks: Iterable[str]) -> set[str]:
    """Return the blocks named in a test that plays cases in Amaranth's simulator. UserError if there is no such test."""
    words: set[str] = set()
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.ImportFrom) and node.module == _PLAYER for node in ast.walk(tree)):
            words |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    if not words:
        raise UserError(f"{folder} has no tests in Amaranth's simulator: name the folder tests/hw of a checkout")
    return words & set(blocks)


def python_table(path: Path) -> Table:
    """Return statements and branches of each part of actcodec from the JSON file of coverage.py. UserError for another file."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in _PACKAGES}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not content["meta"]["branch_coverage"]:
            raise ValueError("branches were not counted")
        for file, part in content["files"].items():
            folder = Path(file).parts
            room = folder[folder.index("actcodec") + 1] if "actcodec" in folder[:-1] else ""
            if room in counts:
                counts[room].update({name: int(part["summary"][name]) for name in _COUNTED})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is no report of coverage.py with branches: {error}") from None
    if empty := [name for name, found in counts.items() if not found["num_statements"]]:
        raise UserError(f"{path} says nothing of actcodec.{empty[0]}: run the tests with --cov=actcodec")
    whole: Counter[str] = Counter()
    for found in counts.values():
        whole.update(found)
    rows = [_python_row(f"actcodec.{name}", found) for name, found in counts.items()]
    return Table(("package", "statements", "%", "branches", "%", "both, %"), [*rows, _python_row("all", whole)])


_COUNTED = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def _python_row(name: str, found: Counter[str]) -> tuple[str, ...]:
    statements, lines, branches, taken = (found[counted] for counted in _COUNTED)
    return (
        name,
        str(statements),
        share(lines, statements),
        str(branches),
        share(taken, branches),
        share(lines + taken, statements + branches),
    )


def share(hit: int, points: int) -> str:
    """Return a percentage, rounded down to a tenth so that 100.0 means complete; a dash without any points."""
    return f"{1000 * hit // points / 10:.1f}" if points else "-"
