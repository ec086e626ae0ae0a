"""Measured properties of CDUs: values per cycle from simulating the RTL, clock from synthesising it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from cdu_driver import job_cycles
from cdu_spec.config import CduConfig
from cdu_spec.dma import MEMORY_LATENCY
from cdu_spec.geometry import BLOCK_VALUES, LANES
from cdu_spec.modes import Coder, Mode
from cdu_spec.register_types import Channel
from cdu_tools.errors import UserError
from cdu_tools.texts import read_text

from cdu_offload.method import COMPRESS, DECOMPRESS
from cdu_offload.network import VALUE_BYTES

#: Channels, height and width of the tensors from which the rates of a unit behind its engine are taken.
_SAMPLE = (4, 32, 64)


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
    engine
        The configuration of a unit whose jobs take what the model of its DMA engine says
        (:func:`cdu_driver.cycles.job_cycles`) at :data:`~cdu_spec.dma.MEMORY_LATENCY`; None where rates and start hold.
    """

    cdus: int
    clock_hz: float
    values_per_cycle: Mapping[str, float]
    mode_rates: Mapping[tuple[str, str], float]
    start_cycles: Mapping[str, float]
    both_ways: bool = True
    engine: CduConfig | None = None

    def bytes_per_s(self, direction: str, mode: Mode | None) -> float:
        """Return uncompressed bytes per second in a mode; without a figure for it (or for None) those of the array."""
        own = None if mode is None else self.mode_rates.get((direction, mode.label))
        values = self.values_per_cycle[direction] if own is None else own
        return VALUE_BYTES * values * self.clock_hz

    def job_seconds(self, direction: str, mode: Mode | None, shape: tuple[int, ...], nbytes: int, packed: float) -> float:
        """Return the seconds of a job with its start: a tensor of ``shape`` and ``nbytes``, a payload of ``packed`` bytes."""
        if self.engine is None or mode not in self.engine.built_modes:
            return self.start_seconds(direction) + nbytes / self.bytes_per_s(direction, mode)
        return _cycles(self.engine, Channel(direction), mode, shape, max(1, round(packed))) / self.clock_hz

    def start_seconds(self, direction: str) -> float:
        """Return the seconds until the first result, once per tensor."""
        return self.start_cycles[direction] / self.clock_hz

    def resized(self, cdus: int) -> OffloadUnit:
        """Return another number of the same CDUs: rates in proportion, as for 1, 4 and 8 (docs/evidence/configurations.md)."""
        factor = cdus / self.cdus
        rates = {direction: rate * factor for direction, rate in self.values_per_cycle.items()}
        return replace(
            self,
            engine=self.engine if cdus == self.cdus else None,
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


def with_engine(unit: OffloadUnit, config: CduConfig) -> OffloadUnit:
    """Return the array behind the DMA engine of a configuration.

    Rates, which hold for other numbers of CDUs and for activations without a mode, are those of the model with the longest
    payloads.
    """
    modes: dict[tuple[str, str], float] = {}
    shapes = [(samples, *_SAMPLE) for samples in (8, 16)]
    for channel in Channel:
        for mode in config.built_modes:
            block = BLOCK_VALUES * config.dtype.bits // 8 if mode is Mode.BYPASS else mode.max_block_bytes
            few, many = (_cycles(config, channel, mode, shape, prod(shape) // BLOCK_VALUES * block) for shape in shapes)
            modes[channel.value, mode.label] = (prod(shapes[1]) - prod(shapes[0])) / (many - few)
    return replace(unit, values_per_cycle=_lowest(modes), mode_rates=modes, engine=config)


@cache
def _cycles(config: CduConfig, channel: Channel, mode: Mode, shape: tuple[int, ...], packed: int) -> int:
    return job_cycles(config, channel, mode, shape, packed, MEMORY_LATENCY)


def with_rates(unit: OffloadUnit, report: Path) -> OffloadUnit:
    """Return the array with the rates in a report.json of ``cdu verify --block array``.

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
    return replace(unit, values_per_cycle=_lowest(modes), mode_rates=modes, start_cycles=starts)


def _lowest(rates: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return the lowest rate of each direction but for bypass, which passes no CDU."""
    return {
        direction: min(rate for (way, mode), rate in rates.items() if way == direction and mode != Mode.BYPASS.label)
        for direction in (COMPRESS, DECOMPRESS)
    }


def _cdus(group: str, usual: int) -> int:
    """Return the CDUs of a group of tests by its label (``array[cdus=3,...]``, or the same behind a DMA engine)."""
    found = re.search(r"[\[,]cdus=(\d+)", group)
    return int(found[1]) if found else usual if group.startswith(("array", "dma_array")) else 0


def with_clock(unit: OffloadUnit, report: Path) -> OffloadUnit:
    """Return the array at the clock in a report.json of ``cdu synth --block array``; UserError if there is none."""
    figures = _json(report, "--synth").get("blocks", {}).get("array")
    if figures is None:
        raise UserError(f"--synth {report} has no block array: run cdu synth --block array")
    try:
        return replace(unit, clock_hz=1e9 / figures["critical_path_ns"])
    except (KeyError, TypeError, ZeroDivisionError):
        raise UserError(f"--synth {report} has no critical path of block array: give that of cdu synth --block array") from None


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
        Reports as for :func:`with_rates` and :func:`with_clock`, which override ``figures``. A unit with a DMA engine needs no
        ``verify``: without it its jobs take what :func:`with_engine` says.
    name
        The configuration as given by the user.

    Raises UserError for figures that are missing and for reports of other units.
    """
    modelled = bool(config.dma_bits) and Coder.ZVC in config.built_coders
    if figures is not None:
        array = of_figures(config.cdus, config.duplex, figures)
    elif synth is None or (verify is None and not modelled):
        raise UserError(f"--config {name} was not measured: give --verify and --synth, or use a configuration of `cdu list`")
    else:
        array = unmeasured(config.cdus)
    array = replace(array, both_ways=config.duplex == "full")
    sources = [f"benchmarks/configurations.py ({name})"] if verify is None or synth is None else []
    if verify is None and modelled:
        array = with_engine(array, config)
        sources = [f"cycles: the model of the DMA engine at a latency of {MEMORY_LATENCY} cycles"]
    if verify is not None:
        array = with_rates(array, verify)
        sources.append(f"rates: {verify}")
    if synth is not None:
        array = with_clock(array, synth)
        sources.append(f"clock: {synth}")
    return array, ", ".join(sources)
