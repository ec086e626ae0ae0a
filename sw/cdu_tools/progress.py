"""Interface through which a study reports its progress."""

from __future__ import annotations

import sys
from typing import Protocol


class Progress(Protocol):
    """Receives the progress of a study, possibly from several threads."""

    def begin(self, what: str, total: int | None = None) -> None:
        """Begin a part of ``total`` steps, if known; it ends where the next one begins."""

    def step(self) -> None:
        """Count one step as done."""

    def say(self, line: str) -> None:
        """Report a result that is ready before the others."""


class Silent:
    """Shows nothing."""

    def begin(self, what: str, total: int | None = None) -> None:
        """Implement :class:`Progress`."""

    def step(self) -> None:
        """Implement :class:`Progress`."""

    def say(self, line: str) -> None:
        """Implement :class:`Progress`."""


class Lines(Silent):
    """Prints the parts that begin, and results, to standard error."""

    def begin(self, what: str, total: int | None = None) -> None:
        """Implement :class:`Progress`."""
        print(f"{what} ...", file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        """Implement :class:`Progress`."""
        print(line, file=sys.stderr, flush=True)
