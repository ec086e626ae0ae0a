"""Execution of tasks: each once, in parallel, and not again if its result is kept from an earlier run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from pathlib import Path
from typing import Any, Protocol

from cdu_tools.files import write_whole

from cdu_synth.sweep.task import Outcome, Task
from cdu_synth.sweep.workers import Workers

#: Tasks in progress per worker: while one runs the next is on its way.
_AHEAD = 2


class Observer(Protocol):
    """Receiver of the events of a sweep."""

    def begin(self, what: str, total: int, kept: int) -> None:
        """Begin a round of ``total`` different measurements, ``kept`` of which have kept results."""

    def done(self, task: Task, outcome: Outcome) -> None:
        """Note the end of a task; not called for kept results."""


class Kept:
    """Results in a folder, a file ``MEASURE-HASH.json`` each. Files are written atomically; other files are ignored."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, task: Task) -> dict[str, Any] | None:
        """Return the result of a task, if it is kept."""
        try:
            content = json.loads((self._folder / f"{task.key}.json").read_text(encoding="utf-8"))
            result: dict[str, Any] = content["result"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return result

    def put(self, task: Task, done: dict[str, Any]) -> None:
        """Keep the result of :func:`~cdu_synth.sweep.task.perform`, with everything that it depends on."""
        self._folder.mkdir(parents=True, exist_ok=True)
        content = {"what": task.what, "versions": task.versions, **done}
        write_whole(self._folder / f"{task.key}.json", json.dumps(content, indent=1) + "\n")


def run(tasks: Iterable[Task], workers: Workers, kept: Kept, observer: Observer) -> dict[str, Outcome]:
    """Return outcomes of tasks by key. A task that fails has an outcome and stops no other; its result is not kept.

    If a process dies, the tasks in progress are repeated one at a time, to find the one that kills it.
    """
    different: dict[str, Task] = {}
    for task in tasks:
        different.setdefault(task.key, task)
    results = {key: kept.get(task) for key, task in different.items()}
    outcomes = {key: Outcome(result) for key, result in results.items() if result is not None}
    kinds = dict.fromkeys(task.work.name for task in different.values())
    observer.begin(", ".join(kinds), len(different), len(outcomes))
    waiting = [task for key, task in different.items() if key not in outcomes]
    suspects = _run(waiting, workers, kept, observer, outcomes)
    for task in suspects:
        for guilty in _run([task], workers, kept, observer, outcomes):
            outcomes[guilty.key] = Outcome(None, BrokenExecutor("the process of the worker ended (was there memory enough?)"))
            observer.done(guilty, outcomes[guilty.key])
    return outcomes


def _run(tasks: Sequence[Task], workers: Workers, kept: Kept, observer: Observer, outcomes: dict[str, Outcome]) -> list[Task]:
    """Run tasks and add their outcomes; return those that were in progress when a process died."""
    waiting, running, lost = list(reversed(tasks)), dict[Future[dict[str, Any]], Task](), list[Task]()
    while waiting or running:
        while waiting and len(running) < _AHEAD * workers.count:
            task = waiting.pop()
            running[workers.submit(task)] = task
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            task = running.pop(future)
            try:
                done = future.result()
            except BrokenExecutor:
                lost.append(task)
                continue
            except Exception as error:
                outcomes[task.key] = Outcome(None, error)
            else:
                kept.put(task, done)
                outcomes[task.key] = Outcome(done["result"])
            observer.done(task, outcomes[task.key])
    return lost
