"""The study of ``cdu sweep``: area, clock, and whatever else is measured, of many configurations."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cdu.delivery.blocks import changes, check_block
from cdu_spec.config import CduConfig, ConfigError
from cdu_tools import yosys
from cdu_tools.errors import UserError
from cdu_tools.files import make_folder
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report

from cdu_synth.area.recipes import CLOCK_NS, RECIPES, check_clock, check_recipes
from cdu_synth.area.wanted import UNIT
from cdu_synth.library import pdk
from cdu_synth.sweep import report
from cdu_synth.sweep.explore import explore
from cdu_synth.sweep.hardware import Area
from cdu_synth.sweep.run import Kept
from cdu_synth.sweep.space import Point, Skipped, Space, points
from cdu_synth.sweep.task import Measure, Outcome, Task
from cdu_synth.sweep.workers import ClusterWorkers, LocalWorkers, check_address

#: What can be measured here, beside what a caller adds.
AREA = "area"
#: A measure with its name in the report, and a phrase on how it is measured.
Noted = tuple[Measure, str, str]
#: Makes a measure that needs the folder of the results, and shows how far it is.
Preparation = Callable[[Path, Progress], Noted]


@dataclass(frozen=True)
class SweepSettings:
    """Which configurations are measured, and how. UserError for what is not allowed.

    Parameters
    ----------
    config
        Configuration whose parameters are varied.
    space
        The values by parameter.
    area
        Whether area and clock are measured.
    block
        Block that is meant; ``array`` is the whole unit.
    sample, seed
        Only so many combinations, drawn with the seed; None is all.
    pdk, clock_ns, yosys, recipes
        As of :class:`cdu_synth.area.synthesise_blocks.SynthesisSettings`.
    mode
        Mode whose ratio and error count; None is jpeg-act, or a unit's first mode.
    axes
        Pairs of figures to compare (:func:`cdu_synth.sweep.pareto.axes`); none are the usual ones.
    jobs
        Processes on this machine; None is its number of processors.
    scheduler
        Address of the scheduler of a Dask cluster that measures in their place.
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
    def points(self) -> tuple[list[Point], list[Skipped]]:
        """Return the points to measure, and the combinations that are no configuration or that the block is not built with."""
        found, skipped = points(self.config, self.space, self.sample, self.seed)
        others = [changes(self.block, point.config).keys() & self.space.keys() for point in found]
        skipped += [
            Skipped(point.parameters, f"block {self.block} is built with another value of {', '.join(sorted(names))}")
            for point, names in zip(found, others, strict=True)
            if names
        ]
        return [point for point, names in zip(found, others, strict=True) if not names], skipped

    @property
    def synthesis(self) -> Area | None:
        """The measure of area and clock."""
        recipes = tuple(self.recipes)
        return Area(self.block, self.pdk, self.clock_ns, recipes, self.yosys) if self.area else None

    @property
    def workers(self) -> ClusterWorkers | LocalWorkers:
        """What measures."""
        return LocalWorkers(self.jobs or os.cpu_count() or 1) if self.scheduler is None else ClusterWorkers(self.scheduler)


def sweep_space(
    settings: SweepSettings,
    measures: Sequence[Noted],
    prepared: Sequence[Preparation],
    folder: Path,
    command: str,
    progress: Progress | None = None,
) -> Report:
    """Measure all points, and tell which of them no other beats: ``sweep.json``, ``sweep.md``, ``pareto.png``.

    Parameters
    ----------
    settings
        The points, and how area is measured.
    measures, prepared
        What else is measured; the latter once the folder is there.
    folder
        Every result is kept in its ``points`` as soon as it is there, and taken from there by the next sweep.
    command
        What the report says that it was made by.
    progress
        Is told every measurement.

    A point that fails is one that the report names. Raises MissingToolError when a tool of a measure is not here.
    """
    shown = progress or Silent()
    area, (found, skipped) = settings.synthesis, settings.points
    for work in (*([area] if area else []), *(measure for measure, _, _ in measures)):
        work.versions()  # what is missing here is said before anything is written
    with settings.workers as workers:
        make_folder(folder)
        noted = [*measures, *(prepare(folder, shown) for prepare in prepared)]
        shown.say(f"{len(found)} points, {len(skipped)} combinations skipped")
        explored, versions = explore(
            found, area, [measure for measure, _, _ in noted], workers, Kept(folder / "points"), _Told(shown)
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
    """Tells a :class:`~cdu_tools.progress.Progress` what an observer of a sweep is told."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown

    def begin(self, what: str, total: int, kept: int) -> None:
        """See :class:`cdu_synth.sweep.run.Observer`."""
        self._shown.begin(f"{what}, {kept} kept from before" if kept else what, total - kept)

    def done(self, task: Task, outcome: Outcome) -> None:
        """See :class:`cdu_synth.sweep.run.Observer`."""
        self._shown.say(f"{task.work.name}: {task.label}{f': {outcome.message}' if outcome.error else ''}")
        self._shown.step()
