"""How a study says how far it is."""

from __future__ import annotations

import sys
from typing import Protocol


class Progress(Protocol):
    """Is told how far a study is; it may be told from several threads."""

    def begin(self, what: str, total: int | None = None) -> None:
        """Something begins, of so many steps when that is known; it ends where something else begins."""

    def step(self) -> None:
        """One of the steps is done."""

    def say(self, line: str) -> None:
        """A result that is there before the others."""


class Silent:
    """Shows nothing."""

    def begin(self, what: str, total: int | None = None) -> None:
        """See :class:`Progress`."""

    def step(self) -> None:
        """See :class:`Progress`."""

    def say(self, line: str) -> None:
        """See :class:`Progress`."""


class Lines(Silent):
    """Prints to standard error what begins, and results."""

    def begin(self, what: str, total: int | None = None) -> None:
        """See :class:`Progress`."""
        print(f"{what} ...", file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        """See :class:`Progress`."""
        print(line, file=sys.stderr, flush=True)
