"""Whole sweep: all measurements at all points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cdu_spec.config_rules import ConfigError

from cdu_synth.sweep.hardware import Area, Elaboration
from cdu_synth.sweep.run import KeptTrials, SweepObserver, run
from cdu_synth.sweep.space import SweepPoint
from cdu_synth.sweep.task import Trial, TrialMeasure, TrialOutcome, TrialWork
from cdu_synth.sweep.workers import Workers

#: Name of a result that belongs to no mode.
WHOLE = ""


@dataclass
class Explored:
    """A point and its results.

    Parameters
    ----------
    point
        The point.
    results
        Results by name of the measure, then by mode; :data:`WHOLE` for results of the whole unit or block.
    errors
        Failed measures by name, with the reason.
    refused
        Reason why there is no such unit, if a measure found that out.
    """

    point: SweepPoint
    results: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    errors: list[tuple[str, str]] = field(default_factory=list)
    refused: str | None = None

    def add(self, task: Trial, outcome: TrialOutcome) -> None:
        """Add the outcome of one of the point's tasks."""
        if isinstance(outcome.error, ConfigError):
            self.refused = str(outcome.error)
        elif outcome.result is None:
            self.errors.append((task.work.name, outcome.message))
        else:
            self.results.setdefault(task.work.name, {})[task.what.get("mode", WHOLE)] = outcome.result


def explore(
    points: Sequence[SweepPoint],
    area: Area | None,
    measures: Sequence[TrialMeasure],
    workers: Workers,
    kept: KeptTrials,
    observer: SweepObserver,
) -> tuple[list[Explored], dict[str, dict[str, str]]]:
    """Measure at all points; the second result has the versions of everything that was used, by measure.

    Equal measurements are made once, whatever number of points they belong to. Raises MissingToolError if this machine lacks a
    tool; every worker must have its versions.
    """
    elaboration = None if area is None else Elaboration(area.block)
    works: list[TrialWork] = [*measures, *(work for work in (elaboration, area) if work)]
    versions = {work.name: work.versions() for work in works}
    explored = [Explored(point) for point in points]
    first: Sequence[TrialMeasure] = [*([elaboration] if elaboration else []), *measures]
    _measure(explored, [_tasks(one, first, versions) for one in explored], workers, kept, observer)
    if area is not None and elaboration is not None:
        second: list[list[Trial]] = []
        for one in explored:
            made = one.results.pop(elaboration.name, {}).get(WHOLE)
            if made is None or one.refused is not None:
                second.append([])
            else:
                what = area.what(made["sha256"], made["block"])
                second.append([Trial(area, versions[area.name], what, _label(one.point), made["packed"])])
        _measure(explored, second, workers, kept, observer)
    return explored, versions


def _tasks(one: Explored, measures: Iterable[TrialMeasure], versions: Mapping[str, Mapping[str, str]]) -> list[Trial]:
    """Return the tasks of a point; none if a measure refuses its configuration."""
    try:
        return [
            Trial(measure, versions[measure.name], what, " ".join(filter(None, (_label(one.point), what.get("mode")))))
            for measure in measures
            for what in measure.whats(one.point.config)
        ]
    except ConfigError as error:
        one.refused = str(error)
        return []


def _measure(
    explored: Sequence[Explored], tasks: Sequence[Sequence[Trial]], workers: Workers, kept: KeptTrials, observer: SweepObserver
) -> None:
    """Carry out the tasks of each point and add their outcomes to it."""
    outcomes = run((task for mine in tasks for task in mine), workers, kept, observer)
    for one, mine in zip(explored, tasks, strict=True):
        for task in mine:
            one.add(task, outcomes[task.key])


def _label(point: SweepPoint) -> str:
    return " ".join(f"{name}={text}" for name, text in point.parameters.items()) or point.config.name
