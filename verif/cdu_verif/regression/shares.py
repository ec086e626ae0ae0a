"""Tests of level ``pairs``: the runs of a block share the values of some test parameters among them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby

from cdu_verif.blocks import record
from cdu_verif.regression import test_names
from cdu_verif.regression.plan import PlannedRun

#: Test parameters whose values are shared: behaviour of stream ends, kind of content, direction of a job.
SHARED = ("pattern", "kind", "direction")


def shared(runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Return the runs of a plan with the tests that each has at level ``pairs``."""
    found: list[PlannedRun] = []
    for block, members in groupby(runs, key=lambda run: run.block):
        together = list(members)
        every = [test_names.names(block, run.config, record(block).modules, skipped=False) for run in together]
        found += [replace(run, tests=tuple(tests)) for run, tests in zip(together, shares(every), strict=True)]
    return found


def shares(every: Sequence[Collection[str]]) -> list[list[str]]:
    """Return the sorted names of the tests of each run of a block; ``every`` are the names of all that each run could have.

    Each test is in at least one share, and each run has some of each function's tests. Tests without shared parameters are in
    every run that has them, as are all tests of a block with one run.
    """
    kept: list[list[str]] = [[] for _ in every]
    functions = groupby(sorted(set().union(*every)), key=lambda name: name.partition("/")[0])
    for number, (_, names) in enumerate(functions):
        tests = {name: _shared(name) for name in names}
        values = sorted(set(tests.values()))
        step = min(len(every), len(values))
        for name, value in tests.items():
            has = [turn for turn, own in enumerate(every) if name in own]
            its_turn = [turn for turn in has if (values.index(value) + number + turn) % step == 0]
            for turn in its_turn or has:
                kept[turn].append(name)
    return kept


def _shared(name: str) -> tuple[str, ...]:
    """Return the shared parameters of a test, as its name has them."""
    return tuple(part for part in name.split("/")[1:] if part.partition("=")[0] in SHARED)
