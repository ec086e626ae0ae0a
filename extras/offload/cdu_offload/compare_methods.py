"""The study of ``cdu offload``: the time of training steps that offload activations, method by method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cdu_tools.distinct import check_distinct
from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report, json_text

from cdu_offload import network as networks
from cdu_offload import platform as machines
from cdu_offload import plots, report
from cdu_offload import ratios as measured
from cdu_offload.catalog import TITLES, Machine
from cdu_offload.network import OffloadNetwork
from cdu_offload.offload import AT_DMA, PLACEMENTS
from cdu_offload.ratios import RatioTable
from cdu_offload.study import OffloadStudy, total
from cdu_offload.unit import OffloadUnit

#: Rates of the link that are allowed, GB/s.
_LINKS = (0.1, 10_000)
#: Methods that are always simulated, because the others are compared with them.
_ALWAYS = ("none", "vdnn")


@dataclass(frozen=True)
class OffloadSettings:
    """Settings of a simulation. UserError for invalid values.

    Parameters
    ----------
    unit, unit_source
        The CDUs, and a phrase with the source of their figures.
    networks, methods
        Names of networks, and of methods in :data:`cdu_offload.catalog.TITLES`; None selects all.
    ratios
        results.json of ``cdu train``, whose ratios override those of the package.
    link_gb_s
        Rate of the link to the host, GB/s each way; None selects that of JPEG-ACT's platform.
    placement
        Position of the CDUs (:data:`cdu_offload.offload.PLACEMENTS`).
    """

    unit: OffloadUnit
    unit_source: str
    networks: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    ratios: Path | None = None
    link_gb_s: float | None = None
    placement: str = AT_DMA

    def __post_init__(self) -> None:
        if self.link_gb_s is not None and not _LINKS[0] <= self.link_gb_s <= _LINKS[1]:
            raise UserError(f"--link-gb-s {self.link_gb_s:g} is not allowed: use {_LINKS[0]} to {_LINKS[1]}")
        if self.placement not in PLACEMENTS:
            raise UserError(unknown("--placement", self.placement, PLACEMENTS))
        for name in self.methods or ():
            if name not in TITLES:
                raise UserError(unknown("--method", name, TITLES))
        check_distinct("--method", self.methods)
        check_distinct("--network", self.networks)
        assert self.chosen

    @cached_property
    def chosen(self) -> list[OffloadNetwork]:
        """The networks; UserError for an unknown one."""
        return list(networks.chosen(None if self.networks is None else list(self.networks)))

    @property
    def wanted(self) -> list[str]:
        """The methods in the order of reports."""
        return [name for name in TITLES if self.methods is None or name in (*self.methods, *_ALWAYS)]


def compare_methods(settings: OffloadSettings, command: str, progress: Progress | None = None) -> Report:
    """Simulate every method on every network: ``offload.md``, ``offload.json`` and three pictures.

    Parameters
    ----------
    settings
        Settings of the simulation.
    command
        Command that the report names.
    progress
        Receives every simulation.

    Raises UserError for ratios that fit no simulated network, and for a method whose ratios were not measured.
    """
    shown, facts = progress or Silent(), machines.facts()
    link = None if settings.link_gb_s is None else settings.link_gb_s * 1e9
    machine = Machine.usual(facts, settings.unit, networks.shipped(), link, settings.placement)
    table, ratios_source = _ratios(settings)
    plan = OffloadStudy(machine, settings.chosen, settings.wanted, table, facts["crossbar_hz"]["value"])
    shown.begin("simulating", total(plan))
    outcomes, sweeps = plan.comparison(shown.step), plan.sweeps(shown.step)
    result = report.content(plan, outcomes, sweeps, facts, command, ratios_source, settings.unit_source)
    files: dict[str, str | bytes] = {
        "speedup.png": plots.speedup_bars(settings.chosen, outcomes),
        "stalls.png": plots.stalls(settings.chosen, outcomes),
        "sensitivity.png": plots.sensitivity(sweeps),
        "offload.json": json_text(result, 1),
        "offload.md": report.markdown(result),
    }
    return Report(result, files, _lines(result))


def _ratios(settings: OffloadSettings) -> tuple[RatioTable, str]:
    """Return the ratios by family and codec, and a phrase with their source."""
    table, source = measured.shipped(), "the package (python benchmarks/offload_data.py ratios)"
    if settings.ratios is None:
        return table, source
    own = measured.read(settings.ratios)
    if not any(one.family in own for one in settings.chosen):
        raise UserError(
            f"--ratios {settings.ratios} is of model {', '.join(own)}, which stands for none of the chosen networks"
        )
    for model, codecs in own.items():
        table[model] = table.get(model, {}) | codecs
    replaced = "; ".join(f"{model}: {', '.join(codecs)}" for model, codecs in own.items())
    return table, f"{settings.ratios} ({replaced}), and what is not there from {source}"


def _lines(result: dict[str, Any]) -> list[str]:
    """Return speed-ups over vDNN."""
    speedups = result["speedups"]["vdnn"].items()
    return [f"{TITLES[name]:15} {row['mean']:.2f} times as fast as vDNN" for name, row in speedups]
