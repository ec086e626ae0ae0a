"""Power report of a unit's blocks: ``power.json`` and ``power.md``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdu_spec.geometry import BLOCK_VALUES
from cdu_tools.files import write_whole

from cdu_synth.power.power import Power, total

CAVEAT = (
    "Pre-layout estimate, not a tape-out result: nets have the pins that they drive and no wires, there is no clock tree but "
    "the flip-flops' clock pins, and without delays there are no glitches. Memories are made of flip-flops."
)
_NO_INTERNAL = "The library has no energies of cells: what is shown is the charging of nets and clock pins alone."


def entry(parts: Mapping[str, Power], clock_ns: float, cycles: int, values: int, has_internal: bool) -> dict[str, Any]:
    """The figures of one netlist with one stimulus.

    Parameters
    ----------
    parts
        Power by row (:func:`cdu_synth.power.power.power`).
    clock_ns
        Clock period.
    cycles, values
        Length of the measurement, and the uncompressed values that passed in it.
    has_internal
        Whether the library has energies of cells.
    """
    whole = total(parts)
    per_value = whole.picojoules(clock_ns, cycles) / values
    return {
        "cycles": cycles,
        "values": values,
        "milliwatts": whole.milliwatts(clock_ns),
        "picojoules_per_value": per_value,
        "nanojoules_per_block": per_value * BLOCK_VALUES / 1e3,
        "complete": has_internal,
        "milliwatts_by_cause": _causes(whole, clock_ns),
        "milliwatts_by_row": {
            name: _causes(part, clock_ns) | {"all": part.milliwatts(clock_ns)}
            for name, part in sorted(parts.items(), key=lambda item: -item[1].milliwatts(clock_ns))
        },
    }


def _causes(part: Power, clock_ns: float) -> dict[str, float]:
    dynamic = {"clock": part.clock_fj, "internal": part.internal_fj, "switching": part.switching_fj}
    return {"leakage": part.leakage_uw / 1e3} | {name: energy / clock_ns / 1e3 for name, energy in dynamic.items()}


def write(folder: Path, content: dict[str, Any]) -> list[Path]:
    """Write both files into an existing folder and return their paths."""
    paths = [folder / name for name in ("power.json", "power.md")]
    write_whole(paths[0], json.dumps(content, indent=2) + "\n")
    write_whole(paths[1], markdown(content))
    return paths


def markdown(content: Mapping[str, Any]) -> str:
    """The report as a page with tables."""
    head = ["block", "codec", "data", "values/cycle", "mW", "leakage", "clock", "internal", "switching", "pJ/value", "nJ/block"]
    head += ["critical path (ns)"]
    rows = [head, ["---"] * 3 + ["---:"] * (len(head) - 3)]
    details, complete = [], True
    for run in content["runs"]:
        causes = run["milliwatts_by_cause"]
        shares = [f"{causes[name]:.3g}" for name in ("leakage", "clock", "internal", "switching")]
        named = [run["block"], run["codec"], run["data"]]
        rate, power = f"{run['values'] / run['cycles']:.2f}", f"{run['milliwatts']:.3g}"
        energies = [f"{run['picojoules_per_value']:.3g}", f"{run['nanojoules_per_block']:.3g}"]
        energies += [f"{run['critical_path_ns']:.2f}"]
        rows.append([*named, rate, power, *shares, *energies])
        complete &= run["complete"]
        if len(run["milliwatts_by_row"]) > 2:
            details.append(f"{run['block']}, {run['codec']}, {run['data']}:\n\n{_rows(run['milliwatts_by_row'])}\n")
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    lines = [
        f"# Power of configuration {content['config']['name']} in {content['pdk']}",
        table,
        f"mW at {content['clock_ns']} ns, whether or not the critical path allows that, and {content['volts']} V. "
        "All words of the netlists equal the golden model's.",
        *([] if complete else [_NO_INTERNAL]),
        CAVEAT,
        *details,
        f"- command: `{content['command']}`\n- activations: {content['source']}\n- versions: {versions}\n"
        f"- library: SHA-256 of the unpacked text {content['library_sha256']}",
    ]
    return "\n\n".join(lines) + "\n"


def _rows(parts: Mapping[str, Mapping[str, float]]) -> str:
    names = ("all", "leakage", "clock", "internal", "switching")
    rows = [["part", *names], ["---"] + ["---:"] * len(names)]
    rows += [[name, *(f"{part[key]:.3g}" for key in names)] for name, part in parts.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
