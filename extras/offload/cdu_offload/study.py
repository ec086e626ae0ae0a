"""The study of ``cdu offload``: every method on every network, and the dependence on link, CDUs and schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any

from cdu_offload.catalog import THROUGH_CDUS, TITLES, Machine, build
from cdu_offload.method import COMPRESS
from cdu_offload.network import OffloadNetwork
from cdu_offload.offload import AT_CACHE, AT_DMA
from cdu_offload.ratios import RatioTable
from cdu_offload.resident import Gist
from cdu_offload.simulation import StepOutcome, simulate

#: Speedups that JPEG-ACT reports: over prior offload accelerators, and over prior activation compression.
PUBLISHED = {"offload": 2.4, "compression": 1.6}
#: Rates of links, bytes per second. PCIe 4.0 and 5.0 with x16 have the part of their nominal rate that JPEG-ACT takes for 3.0.
LINKS = {"PCIe 3.0": 12.8e9, "PCIe 4.0": 25.6e9, "PCIe 5.0": 51.2e9}
LINK_RATES = (6e9, 9e9, *LINKS.values(), 64e9)
CDU_COUNTS = (1, 2, 4, 6, 8, 12, 16)
AHEAD = (1, 2, 4, 8)
#: Methods in the sweep of the link's rate.
_ON_LINK = ("vdnn", "cdma", "sfpr", "jpeg-act", "jpeg-gmc", "division")
#: Number of times that a bisection halves its interval.
_HALVINGS = 40


@dataclass(frozen=True)
class OffloadStudy:
    """Networks, methods and ratios, for a machine."""

    machine: Machine
    networks: Sequence[OffloadNetwork]
    methods: Sequence[str]
    ratios: RatioTable
    crossbar_hz: float

    def outcome(self, name: str, network: OffloadNetwork, machine: Machine | None = None, ahead: int = 1) -> StepOutcome:
        """Simulate one training step."""
        machine = machine or self.machine
        method = build(name, machine, network, self.ratios.get(network.family, {}))
        return simulate(network, machine.platform, method, ahead)

    def comparison(self, on_done: Callable[[], None]) -> dict[str, dict[str, StepOutcome]]:
        """Return network -> method -> outcome. ``on_done`` is called after each."""
        found: dict[str, dict[str, StepOutcome]] = {}
        for network in self.networks:
            found[network.name] = {}
            for name in self.methods:
                found[network.name][name] = self.outcome(name, network)
                on_done()
        return found

    def slowdown(self, name: str, machine: Machine, ahead: int = 1) -> float:
        """Return the time of a step relative to that without offload, geometric mean over the networks."""
        return geometric_mean(
            self.outcome(name, network, machine, ahead).seconds / machine.platform.step_seconds(network)
            for network in self.networks
        )

    def points(self) -> list[dict[str, Any]]:
        """Return the points of the sweeps, each with the name of its sweep, its position on the axis, method, and machine."""
        machine = self.machine
        known = [name for name in _ON_LINK if name in self.methods]
        coded = [name for name in known if name in THROUGH_CDUS]
        best = "jpeg-act" if "jpeg-act" in coded else next(iter(coded), None)
        rows = [_point("link", rate, name, machine.with_link(rate)) for name in known for rate in LINK_RATES]
        rows += [_point("ahead", ahead, name, machine, ahead=ahead) for name in known for ahead in AHEAD]
        if best is not None:
            clocks = {"clock of the CDUs as synthesised": machine.unit.clock_hz, "clock of the crossbar": self.crossbar_hz}
            at_dma = replace(machine, placement=AT_DMA)
            rows += [
                _point("cdus", count, best, at_dma.with_clock(clock).with_cdus(count), series=text)
                for text, clock in clocks.items()
                for count in CDU_COUNTS
            ]
            many = machine.partitions
            places = {
                f"DMA engine, {machine.unit.cdus} CDUs": at_dma,
                f"DMA engine, {many} CDUs": at_dma.with_cdus(many),
                f"cache, {many} CDUs": replace(machine, placement=AT_CACHE),
            }
            rows += [
                _point("placement", text, best, place.with_link(rate), series=name)
                for name, place in places.items()
                for text, rate in LINKS.items()
            ]
        return rows

    def sweeps(self, on_done: Callable[[], None]) -> dict[str, list[dict[str, Any]]]:
        """Return sweep -> rows of ``at``, ``series`` and ``slowdown``."""
        found: dict[str, list[dict[str, Any]]] = {"link": [], "ahead": [], "cdus": [], "placement": []}
        for point in self.points():
            slowdown = self.slowdown(point["method"], point["machine"], point["ahead"])
            found[point["sweep"]].append(
                {"at": point["at"], "series": point["series"], "method": point["method"], "slowdown": slowdown}
            )
            on_done()
        return found

    def gist_efficiency(self, outcomes: dict[str, dict[str, StepOutcome]], speedup: float) -> float | None:
        """Return the part of the memory's rate at which GIST's kernels would make JPEG-ACT ``speedup`` times as fast as GIST.

        None if JPEG-ACT is that much faster already, or if one of both was not simulated.
        """
        if not {"gist", "jpeg-act"} <= set(self.methods):
            return None

        def found(efficiency: float) -> float:
            return geometric_mean(
                simulate(
                    network, self.machine.platform, Gist(self.machine.platform, self.ratios[network.family]["gist"], efficiency)
                ).seconds
                / outcomes[network.name]["jpeg-act"].seconds
                for network in self.networks
            )

        if found(1.0) >= speedup:
            return None
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if found(middle) >= speedup else (low, middle)
        return high


def _point(sweep: str, at: Any, method: str, machine: Machine, *, series: str | None = None, ahead: int = 1) -> dict[str, Any]:
    return {
        "sweep": sweep,
        "at": at,
        "method": method,
        "machine": machine,
        "series": TITLES[method] if series is None else series,
        "ahead": ahead,
    }


def speedups(outcomes: dict[str, dict[str, StepOutcome]], over: str) -> dict[str, dict[str, float]]:
    """Return method -> network -> speedup over ``over``, with the geometric mean under ``mean``."""
    found: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(name for table in outcomes.values() for name in table):
        row = {network: table[over].seconds / table[name].seconds for network, table in outcomes.items()}
        found[name] = row | {"mean": geometric_mean(row.values())}
    return found


def ratio(network: OffloadNetwork, outcome: StepOutcome) -> float | None:
    """Return bytes of the activations that go to the host / bytes that cross the link; None if none do."""
    moved = outcome.bytes_moved[COMPRESS]
    return network.offloaded_bytes / moved if moved else None


def total(study: OffloadStudy) -> int:
    """Return the number of times that ``on_done`` will be called, for a progress bar."""
    return len(study.networks) * len(study.methods) + len(study.points())
