"""The study of ``cdu sweep``: area, clock, and further measures of many configurations."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cdu.delivery.blocks import changes, check_block
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_tools import yosys
from cdu_tools.errors import UserError
from cdu_tools.files import make_folder
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report

from cdu_synth.area.block_selection import UNIT
from cdu_synth.area.recipes import CLOCK_NS, RECIPES, check_clock, check_recipes
from cdu_synth.library import pdk
from cdu_synth.sweep import report
from cdu_synth.sweep.explore import explore
from cdu_synth.sweep.hardware import Area
from cdu_synth.sweep.run import KeptTrials
from cdu_synth.sweep.space import Skipped, Space, SweepPoint, points
from cdu_synth.sweep.task import Trial, TrialMeasure, TrialOutcome
from cdu_synth.sweep.workers import ClusterWorkers, LocalWorkers, check_address

#: Name of the measure of area and clock, to which a caller can add others.
AREA = "area"
#: A measure with its name in the report, and a phrase on its method.
Noted = tuple[TrialMeasure, str, str]
#: Makes a measure that needs the folder of the results, and shows the progress of that.
Preparation = Callable[[Path, Progress], Noted]


@dataclass(frozen=True)
class SweepSettings:
    """Settings of a sweep. UserError for settings that are not allowed.

    Parameters
    ----------
    config
        Configuration whose parameters are varied.
    space
        Values of each varied parameter.
    area
        Whether area and clock are measured.
    block
        Name of the block to measure; ``array`` is the whole unit.
    sample, seed
        Number of combinations to draw at random, and the seed; None for all combinations.
    pdk, clock_ns, yosys, recipes
        Those of :class:`cdu_synth.area.synthesise_blocks.SynthesisSettings`.
    mode
        Mode whose ratio and error are compared; None for jpeg-act, or a unit's first mode.
    axes
        Pairs of figures to compare (:func:`cdu_synth.sweep.pareto.axes`); empty for the default ones.
    jobs
        Number of processes on this machine; None for its number of processors.
    scheduler
        Address of the scheduler of a Dask cluster that measures instead.
    """

    config: CduConfig
    space: Space
    area: bool = True
    block: str = UNIT
    sample: int | None = None
    seed: int = 0
    pdk: str = pdk.DEFAULT
    clock_ns: float = CLOCK_NS
    yosys: str = yosys.GENERATOR
    recipes: Sequence[str] = tuple(RECIPES)
    mode: str | None = None
    axes: Sequence[tuple[str, str]] = ()
    jobs: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        check_block(self.block)
        check_clock(self.clock_ns)
        check_recipes(self.recipes)
        if self.scheduler is not None:
            check_address(self.scheduler)
        if self.scheduler is not None and self.jobs is not None:
            raise UserError("--jobs is for this machine, --scheduler measures on others: give one of them")
        found, skipped = self.points
        if not found:
            raise ConfigError(f"no combination of the values is a configuration: {skipped[0].reason}")
        if self.mode is not None and not any(self.mode in point.config.modes for point in found):
            raise UserError(f"--mode {self.mode!r} is built in at no point: use a mode of --config, or vary modes")

    @cached_property
    def points(self) -> tuple[list[SweepPoint], list[Skipped]]:
        """Return the points to measure, and the combinations that are no configuration or that the block is not built with."""
        found, skipped = points(self.config, self.space, self.sample, self.seed)
        reasons = [self._unbuilt(point) for point in found]
        skipped += [Skipped(point.parameters, why) for point, why in zip(found, reasons, strict=True) if why]
        return [point for point, why in zip(found, reasons, strict=True) if not why], skipped

    def _unbuilt(self, point: SweepPoint) -> str:
        """Return the reason why the block is not built with the values of a point; empty if it is."""
        try:
            names = changes(self.block, point.config).keys() & self.space.keys()
        except ConfigError as error:
            return str(error)
        return f"block {self.block} is built with another value of {', '.join(sorted(names))}" if names else ""

    @property
    def synthesis(self) -> Area | None:
        """Return the measure of area and clock, or None if ``area`` is false."""
        recipes = tuple(self.recipes)
        return Area(self.block, self.pdk, self.clock_ns, recipes, self.yosys) if self.area else None

    @property
    def workers(self) -> ClusterWorkers | LocalWorkers:
        """Return the workers that carry out the measurements."""
        return LocalWorkers(self.jobs or os.cpu_count() or 1) if self.scheduler is None else ClusterWorkers(self.scheduler)


def sweep_space(
    settings: SweepSettings,
    measures: Sequence[Noted],
    prepared: Sequence[Preparation],
    folder: Path,
    command: str,
    progress: Progress | None = None,
) -> Report:
    """Measure all points and find those on the Pareto fronts: ``sweep.json``, ``sweep.md``, ``pareto.png``.

    Parameters
    ----------
    settings
        The points, and the settings of the area measure.
    measures, prepared
        Further measures; those of ``prepared`` are made once the folder exists.
    folder
        Folder of the report. Each result is kept in its ``points`` when it is found, and reused by the next sweep.
    command
        Command line that the report states.
    progress
        Receives every measurement.

    A point that fails is named in the report. Raises MissingToolError if a tool of a measure is missing.
    """
    shown = progress or Silent()
    area, (found, skipped) = settings.synthesis, settings.points
    for work in (*([area] if area else []), *(measure for measure, _, _ in measures)):
        work.versions()  # a missing tool is reported before anything is written
    with settings.workers as workers:
        make_folder(folder)
        noted = [*measures, *(prepare(folder, shown) for prepare in prepared)]
        shown.say(f"{len(found)} points, {len(skipped)} combinations skipped")
        explored, versions = explore(
            found, area, [measure for measure, _, _ in noted], workers, KeptTrials(folder / "points"), _Told(shown)
        )
    about = {
        "command": command,
        "space": {name: list(values) for name, values in settings.space.items()},
        "block": settings.block,
        "notes": _area_note(area) | {name: note for _, name, note in noted},
        "versions": versions,
    }
    return report.of_content(report.summary(explored, skipped, settings.config, settings.axes, settings.mode, about))


def _area_note(area: Area | None) -> dict[str, str]:
    if area is None:
        return {}
    how = f"block {area.block} in {area.library}, goal {area.clock_ns:g} ns, best of {', '.join(area.recipes)}"
    return {"area and clock": how}


class _Told:
    """Pass the events of a sweep on to a :class:`~cdu_tools.progress.Progress`."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown

    def begin(self, what: str, total: int, kept: int) -> None:
        """Implement :class:`cdu_synth.sweep.run.Observer`."""
        self._shown.begin(f"{what}, {kept} kept from before" if kept else what, total - kept)

    def done(self, task: Trial, outcome: TrialOutcome) -> None:
        """Implement :class:`cdu_synth.sweep.run.Observer`."""
        self._shown.say(f"{task.work.name}: {task.label}{f': {outcome.message}' if outcome.error else ''}")
        self._shown.step()
