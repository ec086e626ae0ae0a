"""Lists that name things once."""

from __future__ import annotations

from collections.abc import Iterable

from cdu_tools.errors import UserError


def check_distinct(what: str, names: Iterable[str] | None) -> None:
    """UserError when a name, of what is called ``what``, stands in a list more than once."""
    seen: set[str] = set()
    for name in names or ():
        if name in seen:
            raise UserError(f"{what} {name or repr(name)} is given twice: name it once")
        seen.add(name)
