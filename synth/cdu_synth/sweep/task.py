"""Measurement of a sweep: its kind, its inputs, and its execution on any worker."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from cdu_spec.config import CduConfig
from cdu_tools.errors import UserError


class Work(Protocol):
    """A kind of measurement.

    Objects are hashable, and pickled for workers, which have the same packages but no common folder.
    """

    @property
    def name(self) -> str:
        """Return the name in results and file names."""

    def versions(self) -> dict[str, str]:
        """Return everything on this machine that results depend on: versions of tools, checksums of sources and libraries."""

    def run(self, what: Mapping[str, Any], attachment: str) -> dict[str, Any]:
        """Measure ``what`` and return plain values."""


class Measure(Work, Protocol):
    """A measurement that depends on a configuration alone."""

    def whats(self, config: CduConfig) -> Iterable[dict[str, Any]]:
        """Return all measurements of a configuration, each as the plain values that it depends on.

        Raises ConfigError for a configuration without any.
        """


@dataclass(frozen=True)
class Task:
    """A measurement that is done once, however many points it belongs to.

    Parameters
    ----------
    work
        Kind of the measurement.
    versions
        ``work.versions()`` on the machine that keeps the results; workers must have the same.
    what
        Plain values that the result depends on.
    label
        Name of the measurement for the user.
    attachment
        Further text that is needed and follows from ``what``.
    """

    work: Work
    versions: Mapping[str, str]
    what: Mapping[str, Any]
    label: str
    attachment: str = ""

    @cached_property
    def key(self) -> str:
        """Return the name of the result: equal keys are equal measurements."""
        content = {"what": self.what, "versions": self.versions}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return f"{self.work.name}-{digest[:32]}"


@dataclass(frozen=True)
class Outcome:
    """Outcome of a task: a result, or an error in its place."""

    result: dict[str, Any] | None
    error: BaseException | None = None

    @property
    def message(self) -> str:
        """Return the error in words, preceded by its type if it is not a UserError."""
        return str(self.error) if isinstance(self.error, UserError) else f"{type(self.error).__name__}: {self.error}"


def perform(work: Work, versions: Mapping[str, str], what: Mapping[str, Any], attachment: str) -> dict[str, Any]:
    """Carry out a task in this process; return the result, its origin (host and process), and its duration in seconds.

    Raises UserError if this machine has other versions than the one that keeps the results.
    """
    start, here = time.monotonic(), work.versions()
    if here != dict(versions):
        other = [name for name in {**here, **versions} if here.get(name) != versions.get(name)]
        differences = "; ".join(f"{name} {here.get(name)} in place of {versions.get(name)}" for name in other)
        raise UserError(f"worker {socket.gethostname()} has {differences}: install there what the machine of the sweep has")
    result = work.run(what, attachment)
    return {"result": result, "process": f"{socket.gethostname()} {os.getpid()}", "seconds": round(time.monotonic() - start, 2)}
