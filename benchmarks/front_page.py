"""Writes the figures of README.md and docs/index.md from what has been measured.

    python benchmarks/front_page.py

Nothing is measured here: the configurations are those of `cdu list`, ratio and accuracy those of the comparison of methods
(docs/evidence/results.md), time and memory of a step those of docs/evidence/speed.md.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from cdu_tools.files import write_whole
from digest import Table, read, tables

ROOT = Path(__file__).parent.parent
DATA = ROOT / "sw" / "cdu_cli" / "configurations.json"
EVIDENCE = ROOT / "docs" / "evidence"
#: The pages with figures, and what leads from each to the folder ``docs``.
PAGES = {ROOT / "README.md": "docs/", ROOT / "docs" / "index.md": ""}
BEGIN, END = "<!-- figures: python benchmarks/front_page.py -->", "<!-- end of figures -->"
#: Policies, with the name that each has in the comparison.
POLICIES = {
    "sfpr": "sfpr",
    "jpeg-act": "jpeg-act optL",
    "division": "division",
    "actnn-L2": "actnn-L2",
    "blpa-coded": "blpa-coded 4",
}
NETWORK = "ResNet on cifar10"


def configurations(figures: dict[str, Any]) -> str:
    """A row for each named configuration."""
    rows = []
    for name, found in figures.items():
        tests = found["tests"]
        passed = tests["tests"] - tests["failures"] - tests["skipped"]
        cells = [f"{found['ge']['full'] / 1e3:.0f}", f"{1e3 / found['critical_path_ns']['full']:.0f}"]
        rows.append((f"`{name}`", *cells, f"{found['values_per_cycle']['compress']:.0f}", f"{passed} of {tests['tests']}"))
    header = ("configuration", "area, kGE", "clock, MHz", "values per cycle", "tests passed")
    return Table(header, tuple(rows)).markdown()


def policies(compared: Table, steps: Table) -> str:
    """A row for each policy; time and peak of a step where that was measured."""
    rows = []
    for policy, method in POLICIES.items():
        ((ratio, difference),) = compared.where(of=NETWORK, method=method).only("ratio", "difference").rows
        step = steps.where(policy=policy).only("CPU time", "peak").rows
        rows.append((f"`{policy}`", f"{float(ratio):.1f}x", difference, *(step[0] if step else ("", ""))))
    return Table(("policy", "ratio", "accuracy, points", "step time", "step peak"), tuple(rows)).markdown()


def figures(to_docs: str) -> str:
    """The tables, with links that begin with ``to_docs``."""
    measured = json.loads(DATA.read_text(encoding="utf-8"))
    versions = ", ".join(sorted({found["registers"] for found in measured.values()}))
    compared = read((EVIDENCE / "results_comparison_networks.csv").read_text(encoding="utf-8"))
    found, _, _ = tables((EVIDENCE / "speed.md").read_text(encoding="utf-8"))
    steps = next(table for _, table in found if "CPU time" in table.header)
    evidence = f"{to_docs}evidence/"
    return "\n\n".join(
        [
            configurations(measured),
            f"Before layout, 45 nm, register map {versions}: [configurations]({evidence}configurations.md).",
            policies(compared, steps),
            f"ResNet, CIFAR-10, 3 seeds: [comparison]({evidence}comparison.md). "
            f"Step, in those without compression: [speed]({evidence}speed.md).",
        ]
    )


def written(page: str, to_docs: str) -> str:
    """A page with the present figures."""
    between = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return between.sub(lambda _: f"{BEGIN}\n\n{figures(to_docs)}\n\n{END}", page)


def main() -> None:
    """See the module's documentation."""
    for path, to_docs in PAGES.items():
        write_whole(path, written(path.read_text(encoding="utf-8"), to_docs))


if __name__ == "__main__":
    main()
