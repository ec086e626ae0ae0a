"""Measures the named configurations: area, clock, rate, verification. Writes what `cdu list --all` shows and its page.

    python benchmarks/configurations.py [--only NAME ...]

The page is docs/evidence/configurations.md.

Every figure is what `cdu synth --block array` and `cdu verify --block array` find; half duplex is synthesised as well, for the
area that it saves. Synthesis of whole arrays uses the native Yosys of the package pyosys and two recipes: the smallest result
that meets the period of 1.6 ns, or else the fastest. It takes minutes instead of the hours of `cdu synth`. ``--only``
measures some configurations again and keeps the figures of the others.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from cdu_cli.configurations import REGISTERS
from cdu_spec.config import CONFIGS, CduConfig
from cdu_spec.config_rules import DUPLEX
from cdu_spec.modes import Mode
from cdu_synth.area.block_selection import UNIT
from cdu_synth.area.synthesise_blocks import SynthesisSettings, synthesise_blocks
from cdu_tools.files import make_folder, write_whole
from cdu_tools.progress import Lines
from cdu_tools.report import Table
from cdu_verif.regression.regression import RunSettings
from cdu_verif.regression.verify_blocks import VerifySettings, verify_blocks

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "build" / "configurations"
#: Data that `cdu list` reads.
DATA = ROOT / "sw" / "cdu_cli" / "configurations.json"
#: Tool and recipes for the synthesis of whole arrays.
YOSYS, RECIPES = "pyosys", ("balanced", "speed")
COMMAND = "python benchmarks/configurations.py"
PAGE = ROOT / "docs" / "evidence" / "configurations.md"
HEAD = (
    "name",
    "CDUs",
    "value port",
    "packed port",
    "full duplex",
    "half duplex",
    "compress",
    "decompress",
    "10^9 values/s",
    "tests passed",
)


def cost(name: str, duplex: str) -> dict[str, Any]:
    """Synthesise the array of a configuration, keep the report, and return its figures."""
    config = CONFIGS[name].override(duplex=duplex)
    settings = SynthesisSettings(config, [UNIT], yosys=YOSYS, recipes=list(RECIPES))
    report = synthesise_blocks(settings, COMMAND, Lines())
    report.write(make_folder(KEPT / f"{name}-{duplex}-synth"))
    figures: dict[str, Any] = report.content["blocks"][UNIT]
    return figures


def verified(name: str) -> dict[str, Any]:
    """The report of `cdu verify` for the array of a configuration."""
    # Pinned parameters stay fixed; modes vary, because a unit of this size has to work with all of them.
    pinned = ("cdus", "duplex", "value_format", "packed_port_bits")
    config, folder = CONFIGS[name], KEPT / f"{name}-verify"
    command = " ".join([f"cdu verify --config {name}", *(f"--set {key}={getattr(config, key)}" for key in pinned)])
    report = verify_blocks(VerifySettings(config, RunSettings(folder, command=command), [UNIT], pinned), Lines())
    report.write(folder)
    if report.failed:
        sys.exit("\n".join(report.failed))
    return report.content


def measure(name: str) -> dict[str, Any]:
    """The figures of one configuration."""
    costs, report = {duplex: cost(name, duplex) for duplex in DUPLEX}, verified(name)
    rates = [row for result in report["results"] for row in result["measurements"] if row["mode"] != Mode.BYPASS.label]
    return {
        "registers": REGISTERS,
        "ge": {duplex: round(figures["ge"]) for duplex, figures in costs.items()},
        "critical_path_ns": {duplex: round(figures["critical_path_ns"], 2) for duplex, figures in costs.items()},
        "values_per_cycle": {
            direction: max(rate["values_per_cycle"] for rate in rates if rate["direction"] == direction)
            for direction in ("compress", "decompress")
        },
        "tests": {key: report[key] for key in ("tests", "failures", "skipped")},
    }


def old(figures: dict[str, Any]) -> list[str]:
    """Says which figures are not those of the present unit."""
    names: dict[str, list[str]] = {}
    for name, found in figures.items():
        if found["registers"] != REGISTERS:
            names.setdefault(found["registers"], []).append(name)
    lines = [f"Measured with register map {version}: {', '.join(of)}." for version, of in names.items()]
    return [*lines, f"The present one is {REGISTERS}; these units have not been measured again.", ""] if lines else []


def page(figures: dict[str, Any]) -> str:
    """The markdown of docs/evidence/configurations.md."""
    lines = [
        "# Named configurations",
        "",
        "Choose a configuration by its area, speed and number of CDUs; `cdu list --all` shows the same figures, and",
        f"`{COMMAND}` measures them with `cdu synth --config NAME --set duplex=KIND --block array --yosys {YOSYS}",
        f"{' '.join(f'--recipe {recipe}' for recipe in RECIPES)}` and `cdu verify --config NAME --block array`.",
        "",
        "Area in thousands of two-input NANDs and slowest path: the whole unit before layout, Nangate45 typical, memories as",
        "flip-flops. Compress, decompress: the most values per cycle through the AXI ports without bypass; behind",
        "them the lower of both at the clock of the full-duplex unit. Tests: the whole unit in this configuration, and in the",
        "same one with all modes.",
        "",
        *old(figures),
    ]
    rows = []
    for name, found in figures.items():
        config: CduConfig = CONFIGS[name]
        cells = [f"{found['ge'][duplex] / 1e3:.0f} kGE, {found['critical_path_ns'][duplex]:.2f} ns" for duplex in DUPLEX]
        per_cycle = [found["values_per_cycle"][direction] for direction in ("compress", "decompress")]
        rates = [*(f"{rate:.1f}" for rate in per_cycle), f"{min(per_cycle) / found['critical_path_ns']['full']:.2f}"]
        tests = found["tests"]
        passed = f"{tests['tests'] - tests['failures'] - tests['skipped']} of {tests['tests']}, {tests['skipped']} skipped"
        ports = [f"{config.port_beats * config.beat_bits} bits", f"{8 * config.packed_bytes} bits"]
        rows.append([name, str(config.cdus), *ports, *cells, *rates, passed])
    return "\n".join([*lines, Table(HEAD, rows).markdown()]) + "\n"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(CONFIGS), default=list(CONFIGS), help="measure these")
    chosen = parser.parse_args().only
    for name in chosen:
        found = measure(name)
        # Another run may have written meanwhile.
        kept = json.loads(DATA.read_text(encoding="utf-8")) if DATA.is_file() else {}
        kept[name] = found
        figures = {name: kept[name] for name in CONFIGS if name in kept}
        write_whole(DATA, json.dumps(figures, indent=2) + "\n")
        write_whole(PAGE, page(figures))


if __name__ == "__main__":
    main()
