"""Waivers of points that cannot be reached, with the reason: ``waivers.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cdu_tools.errors import UserError

from cdu_verif.coverage.points import Merged, Point
from cdu_verif.simulation.coverage import KINDS

FILE = Path(__file__).with_name("waivers.toml")


@dataclass(frozen=True)
class Waiver:
    """Waiver of uncovered points of one kind in some blocks, with the reason why nothing can reach them."""

    blocks: tuple[str, ...]
    kind: str  #: one of KINDS
    pattern: str  #: a regular expression that the whole label of a point matches
    reason: str  #: a sentence
    constant: bool = False  #: whether it applies only to bits that Yosys shows to be constant

    def covers(self, block: str, point: Point, constant: bool) -> bool:
        """Return whether the waiver applies to a point, covered or not; ``constant``: Yosys shows its bit to be constant."""
        if block not in self.blocks or point.kind != self.kind or (self.constant and not constant):
            return False
        return re.fullmatch(self.pattern, point.label) is not None


def read(path: Path = FILE, known: Collection[str] | None = None) -> list[Waiver]:
    """Return the waivers of a file; UserError for a missing, unknown or wrong field, and for a block that is not ``known``."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("waiver", [])
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    return [_waiver(entry, f"{path}, waiver {number}", known) for number, entry in enumerate(entries, 1)]


def _waiver(entry: Mapping[str, object], where: str, known: Collection[str] | None) -> Waiver:
    if set(entry) - {"constant"} != {"blocks", "kind", "pattern", "reason"}:
        raise UserError(
            f"{where}: has {', '.join(entry)}: give blocks, kind, pattern and reason, and constant = true if it is so"
        )
    constant = entry.get("constant", False)
    if not isinstance(constant, bool) or (constant and entry["kind"] != "toggle"):
        raise UserError(f"{where}: constant = {constant!r}: use true, for toggles, or leave it out")
    blocks, kind, pattern, reason = (entry[name] for name in ("blocks", "kind", "pattern", "reason"))
    if not (isinstance(blocks, list) and blocks and all(isinstance(block, str) for block in blocks)):
        raise UserError(f"{where}: blocks = {blocks!r} is no list of names")
    if known is not None and (strange := set(blocks) - set(known)):
        raise UserError(f"{where}: unknown block {min(strange)!r}: use {', '.join(known)}")
    if kind not in KINDS:
        raise UserError(f"{where}: unknown kind {kind!r}: use {', '.join(KINDS)}")
    if not (isinstance(reason, str) and reason.strip().endswith(".")):
        raise UserError(f"{where}: the reason is no sentence")
    try:
        re.compile(str(pattern))
    except re.error as error:
        raise UserError(f"{where}: pattern {pattern!r} is no regular expression: {error}") from None
    return Waiver(tuple(blocks), str(kind), str(pattern), reason.strip(), constant)


def waived(waivers: Sequence[Waiver], block: str, merged: Merged) -> dict[Point, Waiver]:
    """Return the uncovered points of a block that are waived, each with the first waiver that applies."""
    found = {}
    for point in merged.uncovered():
        if waiver := next((one for one in waivers if one.covers(block, point, merged.seen[point].constant)), None):
            found[point] = waiver
    return found


def stale(waivers: Sequence[Waiver], blocks: Mapping[str, Merged]) -> list[str]:
    """Return a sentence for each waiver that applies to no uncovered point of a block it names; only simulated blocks count."""
    return [
        f"waiver of {waiver.kind} {waiver.pattern!r} in {block} matches no uncovered point: remove it"
        for waiver in waivers
        for block in waiver.blocks
        if block in blocks
        and not any(waiver.covers(block, point, blocks[block].seen[point].constant) for point in blocks[block].uncovered())
    ]
