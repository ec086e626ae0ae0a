"""Check that lists have no repeated names."""

from __future__ import annotations

from collections.abc import Iterable

from cdu_tools.errors import UserError


def check_distinct(what: str, names: Iterable[str] | None) -> None:
    """Raise UserError if a name, called ``what`` in the message, occurs in a list more than once; the empty name is none."""
    seen: set[str] = set()
    for name in names or ():
        if name and name in seen:
            raise UserError(f"{what} {name} is given twice: name it once")
        seen.add(name)
