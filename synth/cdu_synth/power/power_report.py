"""Power report of a unit's blocks: ``power.json`` and ``power.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdu_spec.geometry import BLOCK_VALUES
from cdu_tools.report import Page, Report, Table, json_text

from cdu_synth.area import provenance
from cdu_synth.power.power import Power, total

CAVEAT = (
    "Pre-layout estimate, not a tape-out result: nets have the pins that they drive and no wires, there is no clock tree but "
    "the flip-flops' clock pins, and without delays there are no glitches. Memories are made of flip-flops."
)
_NO_INTERNAL = "The library has no energies of cells: what is shown is the charging of nets and clock pins alone."
#: Causes of power, in the order of the columns.
_CAUSES = ("leakage", "clock", "internal", "switching")


def entry(parts: Mapping[str, Power], clock_ns: float, cycles: int, values: int, has_internal: bool) -> dict[str, Any]:
    """Return the figures of one netlist with one stimulus.

    Parameters
    ----------
    parts
        Power by row (:func:`cdu_synth.power.power.power`).
    clock_ns
        Clock period.
    cycles, values
        Length of the measurement, and the uncompressed values that passed in it.
    has_internal
        Whether the library has internal energies of cells.
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


def of_content(content: dict[str, Any], netlists: Mapping[str, str]) -> Report:
    """Return the files of a report, with those of the netlists."""
    return Report(content, {**netlists, "power.json": json_text(content), "power.md": markdown(content)})


def markdown(content: Mapping[str, Any]) -> str:
    """Return the report as a page with tables."""
    runs = content["runs"]
    parts: list[str | Table] = [
        _table(runs),
        f"mW at {content['clock_ns']} ns, whether or not the critical path allows that, and {content['volts']} V. "
        "All words of the netlists equal the golden model's.",
        "" if all(run["complete"] for run in runs) else _NO_INTERNAL,
        CAVEAT,
    ]
    for run in runs:
        if len(run["milliwatts_by_row"]) > 2:
            parts += [f"{run['block']}, {run['codec']}, {run['data']}:", _rows(run["milliwatts_by_row"])]
    facts = provenance.facts(content) | {"activations": content["source"]}
    return Page(f"Power of configuration {content['unit']} in {content['pdk']}", parts, facts).markdown()


def _table(runs: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table with a row per block, codec and kind of data."""
    head = ["block", "codec", "data", "values/cycle", "mW", *_CAUSES, "pJ/value", "nJ/block", "critical path (ns)"]
    rows = []
    for run in runs:
        powers = (run["milliwatts"], *(run["milliwatts_by_cause"][name] for name in _CAUSES))
        energies = (run["picojoules_per_value"], run["nanojoules_per_block"])
        figures = [f"{run['values'] / run['cycles']:.2f}", *(f"{figure:.3g}" for figure in (*powers, *energies))]
        rows.append([run["block"], run["codec"], run["data"], *figures, f"{run['critical_path_ns']:.2f}"])
    return Table(head, rows)


def _rows(parts: Mapping[str, Mapping[str, float]]) -> Table:
    names = ("all", *_CAUSES)
    return Table(["part", *names], [[name, *(f"{part[key]:.3g}" for key in names)] for name, part in parts.items()])
