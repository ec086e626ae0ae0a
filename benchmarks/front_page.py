"""Writes the figures of README.md, docs/index.md, docs/user/policies.md and docs/evidence/results.md from what was measured.

    python benchmarks/front_page.py

Nothing is measured here: the configurations and recommended policies are those of `cdu list`, ratio and accuracy those of the
comparison of methods (docs/evidence/results.md), time and memory of a step those of docs/evidence/speed.md, peaks of compiled
steps those of docs/evidence/compiled_step.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from actcodec.policies.catalog import POLICY_NAMES
from actcodec.policies.recommended import (
    EXPERIMENTAL,
    Measured,
    exceptions,
    families,
    has_gpu_kernels,
    measured,
    recommended,
    status,
)
from actcodec.study.foreign import FAMILIES
from cdu_cli.configurations import REGISTERS, tests_passed
from cdu_tools.files import write_whole
from compiled_budgets import lowest, read_budgets
from compiled_measure import FLOAT32
from compiled_page import ROWS, best, costs, read_rows
from digest import Table, read

ROOT = Path(__file__).parent.parent
DATA = ROOT / "sw" / "cdu_cli" / "configurations.json"
EVIDENCE = ROOT / "docs" / "evidence"
BEGIN, END = "<!-- figures: python benchmarks/front_page.py -->", "<!-- end of figures -->"
#: Policies, with the name that each has in the comparison.
POLICIES = {
    "sfpr": "sfpr",
    "jpeg-act": "jpeg-act optL",
    "actnn-L2": "actnn-L2",
    "blpa-coded": "blpa-coded 4",
}
NETWORK = "ResNet on cifar10"
#: Results of plain storage and of two bits, by family, written by benchmarks/results.py.
HARM = EVIDENCE / "results_families_harm.csv"
#: Time and memory of a step of ResNet-18, printed by benchmarks/training_speed.py.
STEPS = EVIDENCE / "speed_resnet18.csv"
#: The section of the page of results.
ANCHOR = "policies-by-family"


def configurations(figures: dict[str, Any]) -> str:
    """A row for each named configuration."""
    rows = []
    for name, found in figures.items():
        cells = [f"{found['ge']['full'] / 1e3:.0f}", f"{1e3 / found['critical_path_ns']['full']:.0f}"]
        cells += [f"{found['values_per_cycle']['compress']:.0f}", str(tests_passed(found["tests"]))]
        rows.append((f"`{name}`", *cells))
    header = ("configuration", "area, kGE", "clock, MHz", "values per cycle", "tests passed")
    return Table(header, tuple(rows)).markdown()


def policies(compared: Table, steps: Table) -> str:
    """A row for each policy; time and peak of a step where that was measured."""
    rows = []
    for policy, method in POLICIES.items():
        ((ratio, difference),) = compared.where(of=NETWORK, method=method).only("ratio", "difference").rows
        step = steps.where(policy=policy).only("CPU time", "peak").rows
        rows.append((f"`{policy}`", f"{float(ratio):.1f}x", difference, *(step[0] if step else ("", ""))))
    return Table(("policy", "ratio of activations", "accuracy, points", "step time", "step peak"), tuple(rows)).markdown()


def recommendations() -> str:
    """A row for each kind of network: the densest policy whose gradient is good."""
    rows = []
    for family in families():
        rows.append((family, *_cells(recommended(family), family)))
    return Table(("network", "policy", "ratio", "cosine"), tuple(rows)).markdown()


def choices() -> str:
    """The same with what each kind of network is, and the densest with kernels on GPUs; which policies are experimental."""
    rows = []
    for family in families():
        chosen = (recommended(family), recommended(family, has_gpu_kernels))
        rows.append((family, FAMILIES[family], *(cell for one in chosen for cell in _cells(one, family))))
    header = ("network", "what it has", "densest", "ratio", "cosine", "with kernels on GPUs", "ratio", "cosine")
    experimental = ", ".join(f"`{name}`" for name in POLICY_NAMES if status(name) == EXPERIMENTAL)
    parts = [Table(header, tuple(rows)).markdown(), _exceptions(), _costs()]
    return "\n\n".join((*parts, f"Experimental: {experimental}. All others are stable."))


def _costs() -> str:
    """Return the table of what a step costs with recommended policies, beside a checkpoint per block."""
    table = costs(read_rows(ROWS), FLOAT32, "AVX2").markdown()
    said = "Peak of a step, and its processor time, as parts of the eager step's, one thread, AVX2"
    return f"{said} ([all](../evidence/compiled_step.md)):\n\n{table}"


def by_family(harm: Table) -> str:
    """Return the table of the results page: the densest policy, and ``harm`` of each family."""
    rows = []
    for family, *others in harm.rows:
        densest = recommended(family)
        rows.append((family, ", ".join(_cells(densest, family)), *others))
    return Table(("network", "densest", *harm.header[1:]), tuple(rows)).markdown()


def _cells(one: Measured, family: str) -> tuple[str, str, str]:
    return f"`{one.text}`", f"{one.families[family].ratio:.1f}x", f"{one.families[family].cosine:.4f}"


def _exceptions() -> str:
    """The models on which recommended policies are not good, by family."""
    found = {family: exceptions(family) for family in families()}
    named = "; ".join(f"{family}: {models}" for family, models in found.items() if models)
    return f"Below 0.99 with these policies: {named or 'no model'}."


def _units(to_docs: str) -> str:
    units = json.loads(DATA.read_text(encoding="utf-8"))
    present = {name: found for name, found in units.items() if found["registers"] == REGISTERS}
    note = f"Pre-layout, 45 nm, register map {REGISTERS}: [configurations]({to_docs}evidence/configurations.md)."
    if old := [f"`{name}`" for name in units if name not in present]:
        note += f" Not measured with this map: {', '.join(old)}."
    return f"{configurations(present)}\n\n{note}"


def _families(to_docs: str) -> str:
    models = sum(one.models for one in measured()[0].families.values())
    seeds = max(one.seeds for one in measured()[0].families.values())
    note = (
        f"Lowest cosine with the exact gradient, {models} models, {seeds} seed{'s' * (seeds > 1)}: "
        f"[by family]({to_docs}evidence/results.md#{ANCHOR}). Accuracy: [paired]({to_docs}evidence/paired.md)."
    )
    return f"{recommendations()}\n\n{note}"


def _compiled(to_docs: str) -> str:
    """Say how low the peaks of compiled steps are that keep the goals of their page, beside torch's own, with AVX2."""
    told: dict[str, list[str]] = {}
    rows = sorted(best(read_rows(ROWS), lowest(read_budgets())).rows, key=lambda row: row[1] != FLOAT32)
    for network, precision, vectors, _, torchs, _, own in rows:
        if vectors == "AVX2":
            told.setdefault(precision, []).append(f"{network} {_hundredths(own)} ({_hundredths(torchs)})")
    peaks = "; ".join(f"{precision}: {', '.join(cells)}" for precision, cells in told.items())
    return (
        "Lowest peak within eager's time, relative to eager, AVX2, `actcodec.compiled` (torch's own), "
        f"{peaks} ([all]({to_docs}evidence/compiled_step.md))."
    )


def _hundredths(of_eager: str) -> str:
    return f"{float(of_eager):.2f}" if of_eager else "none"


def _training(to_docs: str) -> str:
    compared = read((EVIDENCE / "results_comparison_networks.csv").read_text(encoding="utf-8"))
    steps = read(STEPS.read_text(encoding="utf-8")).where(backend="native")
    note = (
        f"ResNet, CIFAR-10, 3 seeds: [comparison]({to_docs}evidence/comparison.md). "
        f"Step, in those without compression: [speed]({to_docs}evidence/speed.md)."
    )
    return f"{policies(compared, steps)}\n\n{note}"


#: The pages with figures: what leads from each to the folder ``docs``, and which figures.
PAGES: dict[Path, tuple[str, tuple[Callable[[str], str], ...]]] = {
    ROOT / "README.md": ("docs/", (_units, _families, _compiled)),
    ROOT / "docs" / "index.md": ("", (_units, _families, _compiled, _training)),
    ROOT / "docs" / "user" / "policies.md": ("../", (lambda _: choices(),)),
    EVIDENCE / "results.md": ("../", (lambda _: by_family(read(HARM.read_text(encoding="utf-8"))),)),
}


def figures(path: Path) -> str:
    """The tables of a page."""
    to_docs, parts = PAGES[path]
    return "\n\n".join(part(to_docs) for part in parts)


def written(path: Path) -> str:
    """A page with the present figures."""
    between = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return between.sub(lambda _: f"{BEGIN}\n\n{figures(path)}\n\n{END}", path.read_text(encoding="utf-8"))


def main() -> None:
    """Write the pages."""
    for path in PAGES:
        write_whole(path, written(path))


if __name__ == "__main__":
    main()
