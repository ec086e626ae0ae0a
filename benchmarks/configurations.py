"""Measures the named configurations: area, clock, rate, verification. Writes what `cdu list` shows and its page.

    python benchmarks/configurations.py [--only NAME ...]

The page is docs/evidence/configurations.md.

Every figure comes out of `cdu synth --block array` and `cdu verify --block array`; half duplex is synthesised as well, for the
area that it saves. Synthesis of whole arrays uses the native Yosys of the package pyosys and one recipe, which differs from
the default of `cdu synth` by a few percent and takes minutes instead of hours. ``--only`` measures some configurations again
and keeps the figures of the others.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from cdu_spec.bitstream import Mode
from cdu_spec.config import CONFIGS, DUPLEX, CduConfig
from cdu_spec.registers import MAJOR, MINOR
from cdu_tools.files import write_whole

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "build" / "configurations"
#: What `cdu list` reads.
DATA = ROOT / "sw" / "cdu_cli" / "configurations.json"
#: How whole arrays are synthesised.
SYNTHESIS = ("--yosys", "pyosys", "--recipe", "balanced")
PAGE = ROOT / "docs" / "evidence" / "configurations.md"
#: Version of the register map that a unit has which is measured now.
REGISTERS = f"{MAJOR}.{MINOR}"


def run(*arguments: str) -> dict[str, Any]:
    """The report of a `cdu` command, which writes it into the folder after ``-o``."""
    print(f"cdu {' '.join(arguments)}", file=sys.stderr, flush=True)
    command = [str(Path(sys.executable).parent / "cdu"), *arguments]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    report: dict[str, Any] = json.loads((Path(arguments[-1]) / "report.json").read_text(encoding="utf-8"))
    return report


def measure(name: str) -> dict[str, Any]:
    """The figures of one configuration."""
    cost = {}
    for duplex in DUPLEX:
        folder = str(KEPT / f"{name}-{duplex}-synth")
        report = run("synth", "--config", name, "--set", f"duplex={duplex}", "--block", "array", *SYNTHESIS, "-o", folder)
        cost[duplex] = report["blocks"]["array"]
    # What is set is not varied; modes are, for a unit of this size with all of them shall work too.
    fixed = {key: getattr(CONFIGS[name], key) for key in ("cdus", "duplex", "value_format", "packed_port_bits")}
    pinned = [part for key, value in fixed.items() for part in ("--set", f"{key}={value}")]
    verified = run("verify", "--config", name, "--block", "array", *pinned, "-o", str(KEPT / f"{name}-verify"))
    rates = [row for result in verified["results"] for row in result["measurements"] if row["mode"] != Mode.BYPASS.label]
    return {
        "registers": REGISTERS,
        "ge": {duplex: round(figures["ge"]) for duplex, figures in cost.items()},
        "critical_path_ns": {duplex: round(figures["critical_path_ns"], 2) for duplex, figures in cost.items()},
        "values_per_cycle": {
            direction: max(rate["values_per_cycle"] for rate in rates if rate["direction"] == direction)
            for direction in ("compress", "decompress")
        },
        "tests": {key: verified[key] for key in ("tests", "failures", "skipped")},
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
        "What each named configuration costs, how fast it is and how many tests it passes; `cdu list` shows the same figures.",
        "`python benchmarks/configurations.py`: per configuration and kind of duplex",
        f"`cdu synth --config NAME --set duplex=KIND --block array {' '.join(SYNTHESIS)}`, and",
        "`cdu verify --config NAME --block array` with nothing varied but the modes.",
        "",
        "Area in thousands of two-input NANDs and slowest path before layout, Nangate45 typical, memories as flip-flops, of",
        "the whole array with its ports and registers. Values per cycle in each direction are the greatest that the benches",
        "measured through the AXI ports (bypass apart); tests are those of the whole array in this configuration, and in the",
        "same one with every mode that there is.",
        "",
        *old(figures),
        "| name | CDUs | value port | packed port | full duplex | half duplex | saved | compress | decompress | tests passed |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, found in figures.items():
        config: CduConfig = CONFIGS[name]
        cells = [f"{found['ge'][duplex] / 1e3:.0f} kGE, {found['critical_path_ns'][duplex]:.2f} ns" for duplex in DUPLEX]
        saved = 1 - found["ge"]["half"] / found["ge"]["full"]
        rates = [f"{found['values_per_cycle'][direction]:.1f}" for direction in ("compress", "decompress")]
        tests = found["tests"]
        passed = f"{tests['tests'] - tests['failures'] - tests['skipped']} of {tests['tests']}, {tests['skipped']} skipped"
        ports = [f"{config.port_beats * config.beat_bits} bits", f"{8 * config.packed_bytes} bits"]
        lines.append("| " + " | ".join([name, str(config.cdus), *ports, *cells, f"{saved:.0%}", *rates, passed]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """See the module's documentation."""
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
