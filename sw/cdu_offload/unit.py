"""Measured properties of CDUs: values per cycle from simulating the RTL, clock from synthesising it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES
from cdu_spec.modes import Mode
from cdu_tools.errors import UserError
from cdu_tools.texts import read_text

from cdu_offload.method import COMPRESS, DECOMPRESS
from cdu_offload.network import VALUE_BYTES


@dataclass(frozen=True)
class OffloadUnit:
    """An array of CDUs.

    Parameters
    ----------
    cdus
        Number of CDUs.
    clock_hz
        Clock of the CDUs.
    values_per_cycle
        Values per cycle of the whole array, by direction.
    mode_rates
        The same by direction and mode, where known.
    start_cycles
        Cycles of a job beyond those of its values, by direction; 0 where not known.
    both_ways
        True if it compresses and decompresses at the same time (``duplex = full``).
    """

    cdus: int
    clock_hz: float
    values_per_cycle: Mapping[str, float]
    mode_rates: Mapping[tuple[str, str], float]
    start_cycles: Mapping[str, float]
    both_ways: bool = True

    def bytes_per_s(self, direction: str, mode: Mode | None) -> float:
        """Return uncompressed bytes per second in a mode; without a figure for it (or for None) those of the array."""
        own = None if mode is None else self.mode_rates.get((direction, mode.label))
        values = self.values_per_cycle[direction] if own is None else own
        return VALUE_BYTES * values * self.clock_hz

    def start_seconds(self, direction: str) -> float:
        """Return the seconds until the first result, once per tensor."""
        return self.start_cycles[direction] / self.clock_hz

    def resized(self, cdus: int) -> OffloadUnit:
        """Return another number of the same CDUs: rates in proportion, as for 1, 4 and 8 (docs/evidence/configurations.md)."""
        factor = cdus / self.cdus
        rates = {direction: rate * factor for direction, rate in self.values_per_cycle.items()}
        return replace(
            self,
            cdus=cdus,
            values_per_cycle=rates,
            mode_rates={key: rate * factor for key, rate in self.mode_rates.items()},
        )


def of_figures(cdus: int, duplex: str, figures: Mapping[str, Any]) -> OffloadUnit:
    """Return the array of an entry of configurations.json (benchmarks/configurations.py)."""
    clock = 1e9 / figures["critical_path_ns"][duplex]
    return OffloadUnit(cdus, clock, figures["values_per_cycle"], {}, {COMPRESS: 0.0, DECOMPRESS: 0.0})


def unmeasured(cdus: int) -> OffloadUnit:
    """Return an array to be completed by :func:`with_rates` and :func:`with_clock`."""
    nothing = {COMPRESS: 0.0, DECOMPRESS: 0.0}
    return OffloadUnit(cdus, 0.0, nothing, {}, nothing)


def with_rates(unit: OffloadUnit, report: Path) -> OffloadUnit:
    """Return the array with the rates in a report.json of ``cdu verify --block array``, or of benchmarks/dma_training.py.

    The rates are the lowest of each mode, whatever the content.

    UserError if the report has no rates of an array of ``unit.cdus`` CDUs.
    """
    rows = [
        row
        for result in _json(report, "--verify").get("results", [])
        if _cdus(result.get("group", ""), unit.cdus) == unit.cdus
        for row in result.get("measurements", [])
        if "values_per_cycle" in row and row["mode"] != Mode.BYPASS.label
    ]
    complete = {row["direction"] for row in rows} == {COMPRESS, DECOMPRESS}
    # A group without the number in its label has that of the configuration, which the report does not name.
    if not complete or max(row["possible"] for row in rows) != LANES * unit.cdus:
        raise UserError(
            f"--verify {report} has no rates of an array of {unit.cdus} CDUs: give that of cdu verify --block array "
            "for the same configuration"
        )
    modes: dict[tuple[str, str], float] = {}
    starts = {COMPRESS: 0.0, DECOMPRESS: 0.0}
    for row in rows:
        key = row["direction"], row["mode"]
        modes[key] = min(row["values_per_cycle"], modes.get(key, row["values_per_cycle"]))
        starts[row["direction"]] = max(starts[row["direction"]], row["cycles"] - row["values"] / row["values_per_cycle"])
    lowest = {direction: min(rate for key, rate in modes.items() if key[0] == direction) for direction in starts}
    return replace(unit, values_per_cycle=lowest, mode_rates=modes, start_cycles=starts)


def _cdus(group: str, usual: int) -> int:
    """Return the CDUs of a group of tests by its label (``array[cdus=3,...]``, or the same behind a DMA engine)."""
    found = re.search(r"[\[,]cdus=(\d+)", group)
    return int(found[1]) if found else usual if group.startswith(("array", "dma_array")) else 0


def with_clock(unit: OffloadUnit, report: Path) -> OffloadUnit:
    """Return the array at the clock in a report.json of ``cdu synth --block array``; UserError if there is none."""
    figures = _json(report, "--synth").get("blocks", {}).get("array")
    if figures is None:
        raise UserError(f"--synth {report} has no block array: run cdu synth --block array")
    return replace(unit, clock_hz=1e9 / figures["critical_path_ns"])


def _json(path: Path, option: str) -> dict[str, Any]:
    try:
        found = json.loads(read_text(path))
    except OSError as error:
        raise UserError(f"cannot read {option} {path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{option} {path} is no JSON: give a report.json") from None
    if not isinstance(found, dict):
        raise UserError(f"{option} {path} is no report.json")
    return found


def described(
    config: CduConfig, figures: Mapping[str, Any] | None, verify: Path | None, synth: Path | None, name: str
) -> tuple[OffloadUnit, str]:
    """Return the CDUs of a configuration, and a phrase with the source of their figures.

    Parameters
    ----------
    config
        The configuration.
    figures
        Its entry of configurations.json; None if it was not measured.
    verify, synth
        Reports as for :func:`with_rates` and :func:`with_clock`, which override ``figures``.
    name
        The configuration as given by the user.

    Raises UserError for figures that are missing and for reports of other units.
    """
    if figures is not None:
        array = of_figures(config.cdus, config.duplex, figures)
    elif verify is None or synth is None:
        raise UserError(f"nobody measured --config {name}: give --verify and --synth, or use a configuration of `cdu list`")
    else:
        array = unmeasured(config.cdus)
    array = replace(array, both_ways=config.duplex == "full")
    sources = [f"benchmarks/configurations.py ({name})"] if verify is None or synth is None else []
    if verify is not None:
        array = with_rates(array, verify)
        sources.append(f"rates: {verify}")
    if synth is not None:
        array = with_clock(array, synth)
        sources.append(f"clock: {synth}")
    return array, ", ".join(sources)
